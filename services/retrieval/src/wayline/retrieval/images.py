"""What an image says of itself: its format and its size, from its first bytes."""

from wayline.contracts.images import Image, seen

__all__ = ["Image", "seen"]
