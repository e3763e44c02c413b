"""Run the retrieval service alone."""

from wayline.chassis import main
from wayline.retrieval.app import build

if __name__ == "__main__":
    main(build)
