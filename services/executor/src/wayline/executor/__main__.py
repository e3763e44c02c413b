"""Run the executor."""

from wayline.chassis import main
from wayline.executor.app import build

main(build)
