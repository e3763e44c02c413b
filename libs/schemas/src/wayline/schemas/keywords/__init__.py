"""What each keyword of JSON Schema compares, by name, in the order in which they are compared."""

from wayline.schemas.keywords import arrays, combinations, numbers, objects, texts, unevaluated, values
from wayline.schemas.keywords.parts import Make

KEYWORDS: dict[str, Make] = {
    **values.KEYWORDS,
    **numbers.KEYWORDS,
    **texts.KEYWORDS,
    **arrays.KEYWORDS,
    **objects.KEYWORDS,
    **combinations.KEYWORDS,
    # Last: they need to know what the others have looked at.
    **unevaluated.KEYWORDS,
}
"""By name; `$ref` and its like are compared by the compiler."""

__all__ = ["KEYWORDS"]
