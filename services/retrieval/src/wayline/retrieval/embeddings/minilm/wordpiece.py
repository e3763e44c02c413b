"""Cut text into the pieces that BERT's uncased models know, as their reference tokenizer does."""

from __future__ import annotations

import re
import unicodedata
from importlib.resources import files

CLS, SEP, UNKNOWN = 101, 102, 100
WORD_MAX_CHARS = 100
"""A longer word is one unknown piece."""
TEXT_CHARS_PER_TOKEN_MAX = 32
"""Of a text so many characters for each wanted token are looked at: words of this length hardly follow each other."""
WORDS_REMEMBERED_MAX = 50_000

_ASCII_WORDS = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_ASCII_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """Greedy longest match of the vocabulary, over words in lower case without accents."""

    def __init__(self) -> None:
        text = files("wayline.retrieval.embeddings.minilm").joinpath("vocab.txt").read_text()
        self._vocabulary = {piece: at for at, piece in enumerate(text.splitlines())}
        self._words: dict[str, tuple[int, ...]] = {}
        self._counts: dict[str, int] = {}

    def encode(self, text: str, *, tokens_max: int) -> list[int]:
        """Return the ids of a text's pieces between the two that mark its ends, at most so many."""
        ids = [CLS]
        for word in _words(text[: tokens_max * TEXT_CHARS_PER_TOKEN_MAX]):
            ids += self._pieces(word)
            if len(ids) >= tokens_max:
                break
        return [*ids[: tokens_max - 1], SEP]

    def count(self, text: str) -> int:
        """Return how many pieces a text has, without those that mark its ends."""
        known = self._counts.get
        # Where texts are cut to passages each is counted several times, and most of what is between spaces comes again.
        return sum([known(part) or self._counted(part) for part in text.split()])

    def _counted(self, part: str) -> int:
        """Count the pieces of what stands between two spaces, and remember that."""
        counted = sum(len(self._pieces(word)) for word in _words(part))
        if len(part) <= WORD_MAX_CHARS:
            if len(self._counts) >= WORDS_REMEMBERED_MAX:
                self._counts.clear()
            self._counts[part] = counted
        return counted

    def _pieces(self, word: str) -> tuple[int, ...]:
        known = self._words.get(word)
        if known is None:
            known = self._cut(word)
            if len(self._words) >= WORDS_REMEMBERED_MAX:
                self._words.clear()
            self._words[word] = known
        return known

    def _cut(self, word: str) -> tuple[int, ...]:
        if len(word) > WORD_MAX_CHARS:
            return (UNKNOWN,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self._vocabulary.get(prefix + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return (UNKNOWN,)
        return tuple(pieces)


def _words(text: str) -> list[str]:
    """Return a text's words and signs in lower case and without accents."""
    if text.isascii():
        return _ascii_words(text)
    # A quotation mark or an accent somewhere does not make the rest slow.
    return [word for part in text.split() for word in (_ascii_words if part.isascii() else _words_of_part)(part)]


def _ascii_words(text: str) -> list[str]:
    return _ASCII_WORDS.findall(_ASCII_UNSEEN.sub("", text.lower()))


def _words_of_part(text: str) -> list[str]:
    spaced: list[str] = []
    for char in unicodedata.normalize("NFD", "".join(map(_seen, text))):
        if unicodedata.category(char) != "Mn":
            lower = char.lower()
            spaced.append(f" {lower} " if _is_sign(char) else lower)
    return "".join(spaced).split()


def _seen(char: str) -> str:
    """Return a character as it is cut: nothing for one that is not seen, with spaces around an ideograph."""
    if char.isspace():
        return " "
    if char == "\ufffd" or unicodedata.category(char)[0] == "C":
        return ""
    code = ord(char)
    return f" {char} " if any(first <= code <= last for first, last in _IDEOGRAPHS) else char


def _is_sign(char: str) -> bool:
    code = ord(char)
    if code < 128:
        return not char.isalnum() and not char.isspace()
    return unicodedata.category(char)[0] == "P"
