"""Detect the language that a text is in."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Any

SAMPLE_CHARS = (400, 2_000)
"""Of each sample: the longer ones are looked at where the short ones leave a doubt."""
SAMPLES = 3
"""Of a long text: its beginning, its middle and its end."""
LETTERS_MIN = 12
IDEOGRAPHS_MIN = 4
"""In fewer there is too little to tell languages apart."""
CONFIDENCE_MIN, CONFIDENCE_HIGH = 0.4, 0.95
"""From which on the language is told, and from which on there is no doubt."""

_LETTER = re.compile(r"[^\W\d_]")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_NO_LANGUAGE = "zxx"


def language_of(text: str) -> str | None:
    """Return the ISO 639-1 code of the language of most of a text; None where that cannot be told. Blocking."""
    told = None
    for chars in SAMPLE_CHARS:
        sample = _sample(text, chars)
        language, confidence = _classified(sample) if _tells(sample) else (_NO_LANGUAGE, 0.0)
        told = language if language != _NO_LANGUAGE and confidence >= CONFIDENCE_MIN else None
        if (told is not None and confidence >= CONFIDENCE_HIGH) or len(sample) == len(text):
            break
    return told


def _tells(sample: str) -> bool:
    letters = sum(1 for _ in islice(_LETTER.finditer(sample), LETTERS_MIN))
    return (
        letters == LETTERS_MIN or sum(1 for _ in islice(_IDEOGRAPH.finditer(sample), IDEOGRAPHS_MIN)) == IDEOGRAPHS_MIN
    )


def _classified(sample: str) -> tuple[str, float]:
    language, confidence = _identifier().classify(sample)
    return str(language), float(confidence)


def _sample(text: str, chars: int) -> str:
    if len(text) <= SAMPLES * chars:
        return text
    step = (len(text) - chars) // (SAMPLES - 1)
    return "\n".join(text[at : at + chars] for at in range(0, SAMPLES * step, step))


@lru_cache(maxsize=1)
def _identifier() -> Any:
    # Its model takes half a second to load.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
