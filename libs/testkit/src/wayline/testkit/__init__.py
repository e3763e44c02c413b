"""Real NATS and Postgres fixtures, and fault injectors."""

from wayline.testkit.databases import Database
from wayline.testkit.platform import Platform
from wayline.testkit.waiting import until

__all__ = ["Database", "Platform", "until"]
