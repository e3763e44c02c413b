"""Passages are exact slices of the text, cut at its own seams."""

from hypothesis import given
from hypothesis import strategies as st

from wayline.retrieval.chunking import Passage, chunk

TEXTS = st.text(alphabet="ab .!?\n#-`~=é漢。\t", max_size=2_000)


@given(text=TEXTS, chars_max=st.integers(1, 300), markdown=st.booleans())
def test_passages_are_slices_in_order_that_leave_out_only_white_space(text: str, chars_max: int, markdown: bool):
    passages = chunk(text, chars_max=chars_max, markdown=markdown)

    at = 0
    for passage in passages:
        assert text[at : passage.start].strip() == ""
        assert passage.text == text[passage.start : passage.end] == passage.text.strip() != ""
        assert len(passage.text) <= chars_max
        at = passage.end
    assert text[at:].strip() == ""


def test_a_passage_knows_the_headings_above_it():
    text = "# Guide\n\n" + "Intro. " * 20 + "\n\n## Setup\n\n" + "Install. " * 20 + "\n\n# Other\n\n" + "End. " * 40

    passages = chunk(text, chars_max=250, markdown=True)

    assert [passage.headings for passage in passages] == [("Guide",), ("Guide", "Setup"), ("Other",)]


def test_an_underlined_heading_is_a_heading_and_a_table_is_not():
    body = "word " * 50
    text = f"Title\n=====\n\n{body}\n\n| a | b |\n---\n\n{body}"

    assert {passage.headings for passage in chunk(text, chars_max=200, markdown=True)} == {("Title",)}


def test_a_comment_in_a_code_fence_is_no_heading():
    text = "# Real\n\n```python\n# not a heading\n```\n\n" + "word " * 100

    assert {passage.headings for passage in chunk(text, chars_max=200, markdown=True)} == {("Real",)}


def test_a_plain_text_has_no_headings():
    assert chunk("# include", chars_max=100) == [Passage("# include", 0, 9)]


def test_a_cut_comes_after_a_paragraph_before_it_comes_within_one():
    one, two, three = "One. " * 10, "Two. " * 10, "Three. " * 10
    text = f"{one.strip()}\n\n{two.strip()}\n\n{three.strip()}"

    assert [passage.text for passage in chunk(text, chars_max=120)] == [
        f"{one.strip()}\n\n{two.strip()}",
        three.strip(),
    ]


def test_a_cut_within_a_paragraph_comes_after_a_sentence():
    passages = chunk("A first sentence. A second sentence! And a third? Yes.", chars_max=36)

    assert [passage.text for passage in passages] == ["A first sentence. A second sentence!", "And a third? Yes."]


def test_a_word_longer_than_a_passage_is_cut_all_the_same():
    assert [len(passage.text) for passage in chunk("x" * 250, chars_max=100)] == [100, 100, 50]


def test_a_lone_heading_joins_what_it_stands_above():
    text = "# Guide\n\n## Setup\n\n" + "Install it. " * 10

    passages = chunk(text, chars_max=300, markdown=True)

    assert [(passage.start, passage.headings) for passage in passages] == [(0, ("Guide", "Setup"))]
