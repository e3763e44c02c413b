"""Numbers that identify a person or an account, told by their check digits. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

_DIGITS = re.compile(r"(?<![\w.])\d(?:[ -]?\d){10,18}(?!\w)")
_CARD_LENGTHS = range(13, 20)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b", re.IGNORECASE)
_IBAN_LENGTHS = range(15, 35)
_SSN = re.compile(r"(?<!\d)(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?!\d)")
_NINO = re.compile(r"\b(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]\b")
_CHINESE_ID = re.compile(r"(?<!\d)\d{17}[\dXx](?!\w)")
_DNI = re.compile(r"\b\d{8}-?[A-HJ-NP-TV-Z]\b")
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
_INSEE = re.compile(r"(?<!\d)[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2}(?!\d)")
_KOREAN_ID = re.compile(r"(?<!\d)\d{6}-[1-8]\d{6}(?!\d)")
_CPF = re.compile(r"(?<!\d)\d{3}\.\d{3}\.\d{3}-\d{2}(?!\d)")
# Numbers whose check digit tells too little are refused where a word says what they are.
_SAID = re.compile(
    r"\b(?:passport|account|routing|social security|national id|identity card|id card|id number|tax id|"
    r"tax number|driver'?s? licen[cs]e|insurance number|medicare|aadhaar|pesel|bsn|ssn|cpf|kontonummer|steuer-?id|"
    r"personalausweis|reisepass|passeport|num[eé]ro de compte|pasaporte|паспорт\w*|счет\w*|инн|снилс)\b"
    r"|身份证|护照|银行卡|口座|パスポート|マイナンバー|여권|주민등록|계좌|جواز|الهوية",
    re.IGNORECASE,
)
_LONG_NUMBER = re.compile(r"(?<!\d)(?=(?:[A-Z]{0,3}[ -]?)?\d)[A-Z]{0,3}\d(?:[ -]?\d){5,}(?!\d)", re.IGNORECASE)


def identity_number(text: str) -> str | None:
    """Return what kind of number stands in a text that identifies an account or a person; None: none does."""
    for kind, found in _KINDS:
        if found(text):
            return kind
    return None


def luhn(digits: str) -> bool:
    """Return whether the last digit of a card's number fits the others."""
    doubled = (int(d) * (1 + at % 2) for at, d in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _is_card(text: str) -> bool:
    numbers = (re.sub(r"[ -]", "", found) for found in _DIGITS.findall(text))
    return any(len(number) in _CARD_LENGTHS and len(set(number)) > 1 and luhn(number) for number in numbers)


def _is_iban(text: str) -> bool:
    return any(_fits_iban(found) for found in _IBAN.findall(text))


def _fits_iban(found: str) -> bool:
    """Check the longest beginning first: words may follow that look like a part of it."""
    words = found.upper().split(" ")
    candidates = ("".join(words[:end]) for end in range(len(words), 0, -1))
    return any(len(one) in _IBAN_LENGTHS and _remainder_of_iban(one) == 1 for one in candidates)


def _remainder_of_iban(iban: str) -> int:
    return int("".join(str(int(letter, 36)) for letter in iban[4:] + iban[:4])) % 97


def _is_chinese_id(text: str) -> bool:
    weights = [2 ** (17 - at) % 11 for at in range(17)]
    for found in _CHINESE_ID.findall(text):
        total = sum(int(digit) * weight for digit, weight in zip(found[:17], weights, strict=True))
        if "10X98765432"[total % 11] == found[17].upper():
            return True
    return False


def _is_dni(text: str) -> bool:
    return any(_DNI_LETTERS[int(found[:8]) % 23] == found[-1] for found in _DNI.findall(text))


def _is_insee(text: str) -> bool:
    for found in _INSEE.findall(text):
        plain = found.replace(" ", "").replace("2A", "19").replace("2B", "18")
        if 97 - int(plain[:13]) % 97 == int(plain[13:]):
            return True
    return False


def _is_cpf(text: str) -> bool:
    for found in _CPF.findall(text):
        digits = [int(d) for d in found if d.isdigit()]
        if len(set(digits)) > 1 and all(_cpf_digit(digits[:n]) == digits[n] for n in (9, 10)):
            return True
    return False


def _cpf_digit(digits: list[int]) -> int:
    rest = sum(digit * (len(digits) + 1 - at) for at, digit in enumerate(digits)) * 10 % 11
    return 0 if rest == 10 else rest


def _is_said(text: str) -> bool:
    return bool(_SAID.search(text) and _LONG_NUMBER.search(text))


_KINDS: tuple[tuple[str, Callable[[str], object]], ...] = (
    ("the number of a card", _is_card),
    ("an account number (IBAN)", _is_iban),
    ("an identity number", _SSN.search),
    ("an identity number", _NINO.search),
    ("an identity number", _is_chinese_id),
    ("an identity number", _is_dni),
    ("an identity number", _is_insee),
    ("an identity number", _KOREAN_ID.search),
    ("an identity number", _is_cpf),
    ("an account or identity number", _is_said),
)
