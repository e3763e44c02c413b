"""A document's passages give its text again, and each is known by what it says."""

from hypothesis import given
from hypothesis import strategies as st

from wayline.documents import TextPage
from wayline.retrieval.documents.chunking import Size
from wayline.retrieval.documents.cut_passages import BETWEEN_PAGES, cut_passages

SIZE = Size(60, 30)
PAGES = st.lists(st.text(alphabet="ab .\n#|漢", min_size=1, max_size=300), max_size=4)


@given(PAGES, st.booleans())
def test_passages_and_the_space_between_are_the_documents_text(texts: list[str], markdown: bool):
    text = BETWEEN_PAGES.join(texts)

    chunks = cut_passages("d", [TextPage(one, markdown=markdown) for one in texts], SIZE)

    assert "".join(one.before + one.text for one in chunks).rstrip() == text.rstrip()
    assert all(text[one.start : one.end] == one.text for one in chunks)
    assert len({one.chunk_id for one in chunks}) == len(chunks)


def test_an_unchanged_passage_keeps_its_id_when_others_change():
    before = cut_passages("d", [TextPage("One.\n\n" + "Two. " * 20)], SIZE)
    after = cut_passages("d", [TextPage("New.\n\nNewer. " * 9), TextPage("One.\n\n" + "Two. " * 20)], SIZE)

    assert {one.chunk_id for one in before} <= {one.chunk_id for one in after}


def test_a_passage_knows_page_title_and_header():
    rows = "name,price\n" + "\n".join(f"lamp {n},{n}" for n in range(20))

    chunks = cut_passages("d", [TextPage(rows, number=3, header="name,price", title="Stock")], SIZE)

    assert [(one.headings, one.metadata) for one in chunks[:2]] == [
        (("Stock",), {"page": 3, "headings": ["Stock"]}),
        (("Stock", "name,price"), {"page": 3, "headings": ["Stock", "name,price"]}),
    ]
