"""Which facts are never remembered, and why. Pure: patterns in a table, one reason each."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import NamedTuple

from wayline.retrieval.memory.identity_numbers import identity_number

CHARS_MIN = 6
LETTERS_SHARE_MIN = 0.45
LETTERS_OF_UNSPACED_MIN = 3
ENTROPY_MIN = 3.6
"""Bits a character of a long word without spaces that looks like a key."""
SECRET_CHARS_MIN = 20
SECRET = "it holds a secret: a password, a key or a token"
QUESTIONS = ("?", "\uff1f", "\u061f")


class Refusal(NamedTuple):
    """Why a fact is not remembered."""

    code: str
    reason: str


_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*(?:PRIVATE KEY|CERTIFICATE)|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_A-Za-z0-9]{16,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bxox[abpr]-[\w-]{10,}|\bAIza[\w-]{30,}"
    r"|\bey[JK][\w-]{8,}\.[\w-]{8,}\.[\w-]*|\bwl_[A-Za-z0-9_-]{16,}|\bglpat-[\w-]{16,}"
    r"|\b[a-z][a-z0-9+]*://[^\s/:@]+:[^\s/@]+@"
    r"|\bBearer\s+[\w.~+/-]{16,}",
)
_SAID_SECRET = re.compile(
    r"\b(?:pass(?:word|wd|phrase|code)|pwd|pin(?: code)?|secret|api[ _-]?key|access[ _-]?(?:key|token)|token|"
    r"private key|credentials?|seed phrase|2fa code|otp|cvv|cvc|passwort|kennwort|geheimzahl|mot de passe|"
    r"contrase[nñ]a|"
    r"пароль|пин-?код)\b\s*(?:for\s+[\w .@-]{1,40}?\s*)?(?:is|are|was|ist|lautet|est|es|[:=]|—|-)\s*\S+"
    r"|(?:密码|口令|パスワード|暗証番号|비밀번호|كلمة المرور|كلمة السر)\s*(?:是|は|\uff1a|:|은|는|هي)?\s*\S+",
    re.IGNORECASE,
)
_TEMPORARY = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|right now|just now|at the moment|for now|currently|temporarily|"
    r"this (?:morning|afternoon|evening|week|weekend|month)|next (?:week|month|hour|few)|last night|"
    r"in (?:a|an|\d+) (?:minute|hour|day)s?|\d+ (?:minutes|hours|days) ago|heute|morgen früh|gestern|gerade|im moment|"
    r"derzeit|nächste woche|aujourd'?hui|demain|hier|en ce moment|actuellement|hoy|mañana por|ayer|ahora mismo|"
    r"actualmente|сегодня|завтра|вчера|сейчас)\b"
    r"|今天|明天|昨天|现在|目前|今日|明日|昨日|今朝|오늘|내일|어제|지금|اليوم|غدا|غدًا|أمس|الآن",
    re.IGNORECASE,
)
# `May` is a month; `may` is a doubt.
_SPECULATIVE = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|presumably|apparently|seems?|seemingly|might|could be|I think|I guess|"
    r"I assume|likely to|not sure|unclear|unknown whether|vielleicht|wahrscheinlich|vermutlich|möglicherweise|scheint|"
    r"peut-être|probablement|il semble|quiz[áa]s?|tal vez|probablemente|parece|может быть|наверное|возможно|кажется)\b"
    r"|可能|也许|大概|好像|かもしれ|たぶん|おそらく|아마|것 같|ربما|قد يكون",
    re.IGNORECASE,
)
_MAY = re.compile(r"\b(?:may|must have|should be)\b")
_COMMANDS = re.compile(
    r"^\W*(?:please\s+)?(?:ignore|disregard|forget|from now on|you (?:must|should|have to|are now|will)|"
    r"do not|don'?t|send|forward|call|execute|run|delete|transfer|pay|reply|respond|answer|say|write|pretend|act as|"
    r"remember to|make sure|reveal|print|output|click|visit|open (?:the|this|http)|download|install|ignoriere|"
    r"vergiss|antworte|ignorez|oubliez|ignora|olvida|игнорируй|забудь)\b"
    r"|^\W*(?:always|never)\s+(?:answer|reply|respond|say|tell|use|send|call|include|mention|trust|ask|do|obey|follow|"
    r"approve|run|write|show|forget|ignore|give|refuse|reveal)\b"
    r"|\b(?:ignore|disregard|override|bypass)\b.{0,40}\b(?:instruction|rule|polic|prompt|approval|previous|safety)"
    r"|\b(?:system prompt|developer message|new instructions?)\b|<\/?(?:system|assistant|user|tool|instructions?)\b"
    r"|^\W*(?:system|assistant|developer)\s*:|\[(?:INST|MEMORY|CONTEXT|SYSTEM|TOOL)|<\|"
    r"|\b(?:the )?(?:assistant|agent|model|ai)\b.{0,30}\b(?:must|should|shall|has to|is to)\b"
    r"|忽略(?:之前|以上)|以前の指示",
    re.IGNORECASE,
)
_ASSISTANTS = re.compile(
    r"^\W*(?:I am an? (?:AI|assistant|language model)|I'?m an? (?:AI|assistant|language model)|as an? (?:AI|assistant)|"
    r"I can (?:help|assist)|I (?:will|'ll) (?:help|assist|remember)|let me know|here (?:is|are)|sure[,!]|of course[,!]|"
    r"(?:the )?(?:assistant|agent|model|AI)\s+(?:\w+\s+)?(?:said|says|told|suggested|suggests|recommended|recommends|"
    r"explained|answered|offered|provided|helped|asked|responded|replied|mentioned|noted|believes|thinks))\b",
    re.IGNORECASE,
)
_NO_FACT = re.compile(
    r"^\W*(?:hi|hello|hey|thanks?|thank you|ok(?:ay)?|yes|no|bye|goodbye|test(?:ing)?|lorem ipsum|n/?a|none|null|"
    r"undefined|todo|tbd|unknown|asdf\w*|foo(?: bar)?)\W*$"
    r"|^(?:the )?user (?:said|says|asked|wrote|greeted|sent|is (?:chatting|talking|asking))\b",
    re.IGNORECASE,
)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SAME_AGAIN = re.compile(r"(.{1,4}?)\1{5,}", re.DOTALL)


def refusal(text: str, *, of_assistant: bool = False) -> Refusal | None:
    """Return why a fact is not remembered; None: it may be."""
    if _SECRETS.search(text) or _SAID_SECRET.search(text):
        return Refusal("secret", SECRET)
    if (kind := identity_number(text)) is not None:
        return Refusal("identity_number", f"it holds {kind}")
    if _looks_like_a_key(text):
        return Refusal("secret", SECRET)
    if of_assistant or _ASSISTANTS.search(text):
        return Refusal("assistant_words", "it is what the assistant said, not what the user did")
    if _COMMANDS.search(text):
        return Refusal("command", "it is an instruction, not a fact")
    if _is_nonsense(text):
        return Refusal("no_fact", "it states nothing that can be remembered")
    if _TEMPORARY.search(text):
        return Refusal("temporary", "it is true only for now: name the date, or leave it out")
    if _SPECULATIVE.search(text) or _MAY.search(text):
        return Refusal("speculative", "it is a guess")
    return None


def _is_nonsense(text: str) -> bool:
    stripped = text.strip()
    letters = sum(letter.isalpha() or letter.isdigit() for letter in stripped)
    if _UNSPACED.search(stripped):
        return letters < LETTERS_OF_UNSPACED_MIN or bool(_SAME_AGAIN.search(stripped))
    if len(stripped) < CHARS_MIN or letters < LETTERS_SHARE_MIN * len(stripped) or not any(map(str.isalpha, stripped)):
        return True
    if len(stripped.split()) < 2 or stripped.endswith(QUESTIONS):
        return True
    return bool(_SAME_AGAIN.search(stripped) or _NO_FACT.search(stripped))


def _looks_like_a_key(text: str) -> bool:
    """Return whether a long word of letters and digits has no more order than one made by chance."""
    return any(
        len(word) >= SECRET_CHARS_MIN
        and any(map(str.isdigit, word))
        and any(map(str.isalpha, word))
        and "://" not in word
        and not re.fullmatch(r"[\w.+-]+@[\w-]+\.[\w.-]+", word)
        and _entropy(word) >= ENTROPY_MIN
        and not re.fullmatch(r"[A-Za-z]*(?:[-_./][A-Za-z0-9]{1,12})+", word)
        for word in re.findall(r"[^\s\"'`,;()<>]+", text)
    )


def _entropy(word: str) -> float:
    counts = Counter(word)
    return -sum(n / len(word) * math.log2(n / len(word)) for n in counts.values())
