"""The platform as the tests of our own OpenAI door have it."""

from ..integration.openai_api.conftest import doors, opened

__all__ = ["doors", "opened"]
