"""Run the registry."""

from wayline.chassis import main
from wayline.tool_registry.app import build

main(build)
