"""Run the gateway as a process of its own."""

from wayline.chassis import main
from wayline.gateway.app import build

main(build)
