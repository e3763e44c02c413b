"""Run the router."""

from wayline.chassis import main
from wayline.router.app import build

main(build)
