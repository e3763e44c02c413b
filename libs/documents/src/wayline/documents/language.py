"""Detect the language that a text is in."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Any

SAMPLE_CHARS = 2_000
SAMPLES = 3
"""Of a long text: its beginning, its middle and its end."""
LETTERS_MIN = 12
IDEOGRAPHS_MIN = 4
"""In fewer there is too little to tell languages apart."""
CONFIDENCE_MIN = 0.4

_LETTER = re.compile(r"[^\W\d_]")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_NO_LANGUAGE = "zxx"


def language_of(text: str) -> str | None:
    """Return the ISO 639-1 code of the language of most of a text; None where that cannot be told. Blocking."""
    sample = _sample(text)
    letters = sum(1 for _ in islice(_LETTER.finditer(sample), LETTERS_MIN))
    if letters < LETTERS_MIN and sum(1 for _ in islice(_IDEOGRAPH.finditer(sample), IDEOGRAPHS_MIN)) < IDEOGRAPHS_MIN:
        return None
    language, confidence = _identifier().classify(sample)
    return str(language) if language != _NO_LANGUAGE and confidence >= CONFIDENCE_MIN else None


def _sample(text: str) -> str:
    if len(text) <= SAMPLES * SAMPLE_CHARS:
        return text
    step = (len(text) - SAMPLE_CHARS) // (SAMPLES - 1)
    return "\n".join(text[at : at + SAMPLE_CHARS] for at in range(0, SAMPLES * step, step))


@lru_cache(maxsize=1)
def _identifier() -> Any:
    # Its model takes half a second to load.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
