"""Run the retrieval service alone."""

import asyncio

from wayline.chassis import run
from wayline.retrieval.app import build

if __name__ == "__main__":
    asyncio.run(run(build))
