"""`python -m wayline.notifier` runs the service."""

from wayline.chassis import main
from wayline.notifier.app import build

if __name__ == "__main__":
    main(build)
