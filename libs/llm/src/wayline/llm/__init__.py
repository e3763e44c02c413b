"""One Model protocol, and the models behind it."""

from wayline.llm.model import Finished, Model, ModelError, ModelRequest, TextDelta
from wayline.llm.prices import price

__all__ = ["Finished", "Model", "ModelError", "ModelRequest", "TextDelta", "price"]
