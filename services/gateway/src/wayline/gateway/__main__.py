"""Run the gateway as a process of its own."""

import asyncio

from wayline.chassis import run
from wayline.gateway.app import build

asyncio.run(run(build))
