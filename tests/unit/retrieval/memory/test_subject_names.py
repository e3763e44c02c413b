"""Which subjects a text names: whole words, one bearer of a name, capitals where the name has them."""

from __future__ import annotations

import pytest

from wayline.contracts.memory import SubjectRef
from wayline.retrieval.memory.subject_names import NO_NAME, PHRASES_MAX, Named, name_key, named_in, phrases

OWN = SubjectRef(type="company", id="own")


def named(text: str, *names: str) -> list[str]:
    candidates = []
    for number, name in enumerate(names):
        ref = SubjectRef(type="person", id=f"p{number}")
        candidates.append(Named(ref, name, name_key(ref, name)))
    return [names[int(ref.id[1:])] for ref in named_in(OWN, phrases(text), candidates)]


@pytest.mark.parametrize(
    ("text", "name", "is_named"),
    [
        ("The buyer is Anna Weiss of Bonn.", "Anna Weiss", True),
        ("the buyer is ANNA  WEISS, of Bonn", "Anna Weiss", True),
        ("Annabel Weiss buys.", "Anna", False),
        ("They will decide.", "Will", False),
        ("Will decides.", "Will", True),
        ("They sell widgets.", "widgets", True),
        ("Покупатель: Анна Вайс.", "Анна Вайс", True),
        ("买方是北京华信公司的王经理。", "华信公司", True),
        ("구매자는 한빛소프트 입니다", "한빛소프트", True),
        ("قال إن شركة النور ستوقع", "شركة النور", True),
        ("It is 2024.", "2024", False),
        ("An AI firm.", "AI", False),
    ],
)
def test_a_name_is_found_as_whole_words_only(text: str, name: str, is_named: bool):
    assert named(text, name) == ([name] if is_named else [])


def test_a_name_that_two_subjects_have_is_nobodys():
    assert named("Anna Weiss signs with Max Frei.", "Anna Weiss", "anna weiss", "Max Frei") == ["Max Frei"]


def test_a_subject_without_a_name_is_called_by_its_id():
    ref = SubjectRef(type="company", id="Globex Inc")

    assert named_in(OWN, phrases("A rival of Globex Inc."), [Named(ref, "", name_key(ref, ""))]) == [ref]
    assert named_in(ref, phrases("Globex Inc grows."), [Named(ref, "", name_key(ref, ""))]) == []


@pytest.mark.parametrize("name", ["ab", "12345", "a b c d e f g", "word " * 50, "!?"])
def test_what_could_stand_in_any_text_is_no_name(name: str):
    assert name_key(SubjectRef(type="person", id="p"), name) == NO_NAME


def test_the_phrases_of_a_text_are_bounded():
    assert len(phrases("字" * 1_000)) <= PHRASES_MAX and len(phrases("词语表" * 333)) <= PHRASES_MAX
    assert len(phrases(" ".join(map(str, range(5_000))))) <= PHRASES_MAX + 1
