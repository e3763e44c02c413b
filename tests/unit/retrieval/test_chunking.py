"""Passages are exact slices of the text, cut at its own seams."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wayline.retrieval.documents import chunking
from wayline.retrieval.documents.chunking import Passage, Size, chunk, estimated_tokens

TEXTS = st.text(alphabet="ab .!?\n#-`~=é漢。\t", max_size=2_000)


@given(text=TEXTS, chars_max=st.integers(1, 300), markdown=st.booleans())
def test_passages_are_slices_in_order_that_leave_out_only_white_space(text: str, chars_max: int, markdown: bool):
    passages = chunk(text, size=Size(chars_max), markdown=markdown)

    at = 0
    for passage in passages:
        assert text[at : passage.start].strip() == ""
        assert passage.text == text[passage.start : passage.end] == passage.text.strip() != ""
        assert len(passage.text) <= chars_max
        at = passage.end
    assert text[at:].strip() == ""


def test_a_passage_knows_the_headings_above_it():
    text = "# Guide\n\n" + "Intro. " * 20 + "\n\n## Setup\n\n" + "Install. " * 20 + "\n\n# Other\n\n" + "End. " * 40

    passages = chunk(text, size=Size(250), markdown=True)

    assert [passage.headings for passage in passages] == [("Guide",), ("Guide", "Setup"), ("Other",)]


def test_an_underlined_heading_is_a_heading_and_a_table_is_not():
    body = "word " * 50
    text = f"Title\n=====\n\n{body}\n\n| a | b |\n---\n\n{body}"

    assert {passage.headings for passage in chunk(text, size=Size(200), markdown=True)} == {("Title",)}


def test_a_comment_in_a_code_fence_is_no_heading():
    text = "# Real\n\n```python\n# not a heading\n```\n\n" + "word " * 100

    assert {passage.headings for passage in chunk(text, size=Size(200), markdown=True)} == {("Real",)}


def test_a_plain_text_has_no_headings():
    assert chunk("# include", size=Size(100)) == [Passage("# include", 0, 9)]


def test_a_cut_comes_after_a_paragraph_before_it_comes_within_one():
    one, two, three = "One. " * 10, "Two. " * 10, "Three. " * 10
    text = f"{one.strip()}\n\n{two.strip()}\n\n{three.strip()}"

    assert [passage.text for passage in chunk(text, size=Size(120))] == [
        f"{one.strip()}\n\n{two.strip()}",
        three.strip(),
    ]


def test_a_cut_within_a_paragraph_comes_after_a_sentence():
    passages = chunk("A first sentence. A second sentence! And a third? Yes.", size=Size(36))

    assert [passage.text for passage in passages] == ["A first sentence. A second sentence!", "And a third? Yes."]


def test_a_word_longer_than_a_passage_is_cut_all_the_same():
    assert [len(passage.text) for passage in chunk("x" * 250, size=Size(100))] == [100, 100, 50]


def test_a_lone_heading_joins_what_it_stands_above():
    text = "# Guide\n\n## Setup\n\n" + "Install it. " * 10

    passages = chunk(text, size=Size(300), markdown=True)

    assert [(passage.start, passage.headings) for passage in passages] == [(0, ("Guide", "Setup"))]


@given(text=TEXTS, tokens_max=st.integers(1, 40))
def test_no_passage_has_more_tokens_than_it_may(text: str, tokens_max: int):
    passages = chunk(text, size=Size(1_000, tokens_max))

    assert all(estimated_tokens(passage.text) <= tokens_max for passage in passages)


def test_a_passage_is_as_long_as_the_embedder_takes_it():
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text.split())

    passages = chunk("one two three four five six", size=Size(1_000, 2, count))

    assert [passage.text for passage in passages] == ["one two", "three four", "five six"]
    assert all(len(text) <= 1_000 for text in counted)


def test_scripts_that_take_more_tokens_get_shorter_passages():
    size = Size(1_000, 256)

    english = chunk("The tides rise twice a day. " * 200, size=size)
    chinese = chunk("潮水每天上涨两次。" * 600, size=size)

    assert max(len(passage.text) for passage in english) > 900
    assert 200 < max(len(passage.text) for passage in chinese) < 300


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Он пришёл домой поздно. Вечером было темно.", ["Он пришёл домой поздно.", "Вечером было темно."]),
        ("Ήρθε αργά. Ήταν νύχτα.", ["Ήρθε αργά.", "Ήταν νύχτα."]),
        ("he came home late. then he slept.", ["he came home late.", "then he slept."]),
        ("It rises, e.g. twice a day, etc. and falls.", ["It rises, e.g. twice a day, etc. and falls."]),
        ("هل جاء مبكرا؟ نعم جاء.", ["هل جاء مبكرا؟", "نعم جاء."]),
        ("وہ آیا۔ پھر گیا۔", ["وہ آیا۔", "پھر گیا۔"]),  # noqa: RUF001  # noqa: RUF001
        ("वह आया। फिर गया।", ["वह आया।", "फिर गया।"]),
        ("彼は「来た。」と言った。本当だ。", ["彼は「来た。」", "と言った。", "本当だ。"]),
    ],
    ids=["ru", "el", "small", "abbreviations", "ar", "ur", "hi", "ja"],
)
def test_sentences_end_where_their_script_ends_them(text: str, sentences: list[str]):
    longest = max(map(len, sentences))

    assert [passage.text for passage in chunk(text, size=Size(longest))] == sentences


def test_front_matter_is_no_heading():
    text = "---\ntitle: Tides\ntags: sea\n---\n\n" + "Word. " * 100 + "\n\n## Moon\n\n" + "Word. " * 100

    passages = chunk(text, size=Size(700), markdown=True)

    assert [passage.headings for passage in passages] == [(), ("Moon",)]


def test_a_rule_at_the_beginning_is_no_front_matter():
    text = "---\nSome words.\n\n# Real\n\n" + "Word. " * 100 + "\n\n---\n\n" + "Word. " * 100

    assert chunk(text, size=Size(700), markdown=True)[-1].headings == ("Real",)


def test_each_piece_of_a_table_stands_under_its_header():
    rows = "\n".join(f"| item {n} | {n} |" for n in range(80))
    text = f"# Prices\n\n| Name | Price |\n|---|---|\n{rows}\n\nAfterword. " + "Word. " * 120

    passages = chunk(text, size=Size(400), markdown=True)

    inside = [passage for passage in passages if passage.text.startswith("| item")]
    assert len(inside) >= 3
    assert {passage.headings for passage in inside} == {("Prices", "| Name | Price |")}
    assert passages[-1].headings == ("Prices",)


def test_code_is_cut_between_definitions_and_knows_its_block():
    body = "\n".join(f"        line_{n} = {n}" for n in range(30))
    text = f"import os\n\n\nclass Tide:\n    def rise(self):\n{body}\n\n\ndef fall():\n    return 1\n"

    passages = chunk(text, size=Size(400), code=True)

    assert passages[-1].text == "def fall():\n    return 1"
    assert ("class Tide:", "def rise(self):") in {passage.headings for passage in passages}


@pytest.mark.parametrize(
    "text",
    [
        "# " + " " * 300_000 + "x",
        "# " + "# " * 150_000 + "x",
        "." * 300_000,
        "x " * 500_000,
        "\n" + " " * 300_000 + "x",
        "x" * 1_000_000,
        "---\na:" + " " * 300_000,
        "|" * 300_000,
        ". " * 300_000,
    ],
    ids=["spaces", "signs", "stops", "words", "blank", "no seam", "front matter", "bars", "sentences"],
)
@pytest.mark.timeout(60)
def test_hostile_texts_are_cut_in_linear_time(text: str):
    passages = chunk(text, size=Size(1_000, 256), markdown=True)

    assert "".join("".join(passage.text for passage in passages).split()) == "".join(text.split())


@pytest.mark.parametrize("stretch", [7, 50, 1_000])
def test_stretches_make_no_difference_to_passages(stretch: int, monkeypatch: pytest.MonkeyPatch):
    words = [f"word{n}{'. ' if n % 9 == 0 else '! ' if n % 31 == 0 else ' '}" for n in range(3_000)]
    text = "".join(word + ("\n\n" if n % 200 == 199 else "") for n, word in enumerate(words))
    whole = chunking.chunk(text, size=Size(200))

    monkeypatch.setattr(chunking, "STRETCH_CHARS", stretch)
    monkeypatch.setattr(chunking, "SEAM_CHARS_MAX", 4)

    assert chunking.chunk(text, size=Size(200)) == whole
