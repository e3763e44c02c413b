"""What images and files take of a prompt, by a model's card, and which of them it cannot be sent."""

from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.chat import (
    Attachment,
    FilePart,
    ImagePart,
    NoteMessage,
    TextPart,
    ToolImage,
    ToolMessage,
    UserMessage,
)
from wayline.contracts.models import MediaRules, ModelCard
from wayline.llm import media
from wayline.llm.catalogue import bundled
from wayline.llm.media import BESIDE_TOKENS_MAX, IMAGE_TOKENS
from wayline.llm.tokens import estimate

CLAUDE, HAIKU, GPT, GEMINI = (
    next(card for card in bundled() if card.name == name)
    for name in (
        "anthropic/claude-opus-5-5",
        "anthropic/claude-haiku-4-5",
        "openai/gpt-6-astra",
        "chat/gemini-3.8-flash",
    )
)
MINE = ModelCard(provider="chat", model="mine", tier="standard", images=True, files=True)
OFFLINE = next(card for card in bundled() if card.provider == "offline")
MEASURED: dict[tuple[int, int], tuple[int, int, int, int]] = {
    (256, 256): (177, 165, 77, 1_090),
    (1_024, 1_024): (1_446, 1_434, 1_229, 1_090),
    (1_280, 720): (1_273, 1_261, 1_104, 1_101),
    (1_920, 1_080): (2_768, 1_625, 2_448, 1_101),
    (2_560, 1_440): (3_069, 1_657, 2_931, 1_101),
    (4_032, 3_024): (4_005, 1_661, 2_942, 1_065),
}
"""Tokens that the providers counted for one image, with a few words (77 or 65 tokens on Claude, none on OpenAI)."""
WORDS = (77, 65, 0, 0)


def attachment(media_type: str = "image/png", **more: Any) -> Attachment:
    about = {"document_id": "d", "name": "it", "sha256": "0" * 64, "size_bytes": 1_000}
    return Attachment(media_type=media_type, **{**about, **more})


@pytest.mark.parametrize("size", MEASURED)
def test_image_tokens_are_bounded_and_exact_without_downscaling(size: tuple[int, int]):
    image = attachment(width=size[0], height=size[1])

    for card, measured, words in zip((CLAUDE, HAIKU, GPT, GEMINI), MEASURED[size], WORDS, strict=True):
        assert media.most_tokens(card, image) >= measured - words, card.name
        if max(size) <= 1_280 and card is not GEMINI:
            assert media.tokens(card, image) == measured - words


@pytest.mark.parametrize(
    ("card", "pages", "text_bytes", "measured"),
    [(CLAUDE, 1, 2_600, 2_347), (CLAUDE, 10, 26_000, 23_236), (CLAUDE, 1, 0, 1_600)],
)
def test_a_pdf_takes_an_image_a_page_and_its_text(card: ModelCard, pages: int, text_bytes: int, measured: int):
    paper = attachment("application/pdf", pages=pages, text_bytes=text_bytes)

    assert media.tokens(card, paper) == pytest.approx(measured, rel=0.1)
    assert media.most_tokens(card, paper) >= measured


def test_a_text_attachment_counts_as_text_bounded_by_the_densest():
    note = attachment("text/markdown", text_bytes=300)

    assert (media.tokens(CLAUDE, note), media.most_tokens(CLAUDE, note)) == (75, 300)


def test_a_chinese_attachment_counts_as_estimated_when_read():
    text = "\u6f6e\u6c50\u6bcf\u5929" * 25
    note = attachment("text/plain", text_bytes=300, text_tokens=estimate(text))

    assert (media.tokens(CLAUDE, note), media.most_tokens(CLAUDE, note)) == (163, 300)


def test_an_image_may_fill_the_window_of_an_unknown_model():
    assert media.most_tokens(MINE, attachment(width=10, height=10)) == MINE.context_window
    assert media.tokens(MINE, attachment(width=9_000, height=9_000)) == IMAGE_TOKENS
    assert media.tokens(MINE, attachment(width=28, height=29)) == 2


def test_an_image_of_unknown_size_counts_as_the_largest():
    rules = MediaRules(patches_max=100, patch_tokens=Decimal("1.5"))
    card = MINE.model_copy(update={"media": rules})

    assert (media.tokens(card, attachment()), media.most_tokens(card, attachment())) == (150, 150 + BESIDE_TOKENS_MAX)


@pytest.mark.parametrize(
    ("card", "attachments", "says"),
    [
        (MINE.model_copy(update={"images": False}), [attachment()], "it takes no images, and it is one"),
        (MINE.model_copy(update={"files": False}), [attachment("application/pdf")], "it is a PDF"),
        (CLAUDE, [attachment("image/tiff")], "models are sent images, PDF and text"),
        (CLAUDE, [attachment(size_bytes=4_000_000)], "at most 3932160 bytes, and it has 4000000"),
        (CLAUDE, [attachment(width=8_001, height=1)], "at most 8000 pixels a side"),
        (CLAUDE, [attachment()] * 601, "at most 600 images at once"),
        (HAIKU, [attachment("application/pdf", pages=60)] * 2, "at most 100 pages of PDF at once, and these are 120"),
        (CLAUDE, [attachment("text/plain", size_bytes=13_000_000)] * 2, "at most 24000000 bytes"),
        (OFFLINE, [attachment()], "it takes no images"),
    ],
)
def test_an_attachment_unfit_for_a_model_has_a_reason(card: ModelCard, attachments: list[Attachment], says: str):
    problem = media.problem(card, attachments)

    assert problem is not None and says in problem


@pytest.mark.parametrize(
    ("card", "attachments"),
    [
        (
            CLAUDE,
            [attachment(width=8_000, height=8_000, size_bytes=3_932_160), attachment("application/pdf", pages=600)],
        ),
        (MINE, [attachment(size_bytes=10**8)] * 900),
        (
            MINE.model_copy(update={"images": False, "files": False}),
            [attachment("text/plain"), attachment("application/json")],
        ),
        (OFFLINE, [attachment("application/pdf", pages=5_000, size_bytes=10**8)]),
    ],
)
def test_what_a_model_takes_is_no_problem(card: ModelCard, attachments: list[Attachment]):
    assert media.problem(card, attachments) is None


def test_a_document_counts_as_often_as_messages_name_it():
    one, other = attachment(document_id="one"), attachment(document_id="other")
    messages = (
        UserMessage(parts=(TextPart(text="x"), ImagePart(document_id="one"), FilePart(document_id="gone"))),
        NoteMessage(label="CONTEXT", text="one"),
        UserMessage(parts=(FilePart(document_id="other"), FilePart(document_id="one"))),
    )

    assert media.named(messages, {"one": one, "other": other}) == [one, other, one]
    assert media.named(messages, {}) == []


def returned(*sizes: tuple[int, int], size_bytes: int = 9) -> ToolMessage:
    """A tool's result with images."""
    about = {"media_type": "image/png", "sha256": "0" * 64, "size_bytes": size_bytes, "content_base64": "AAAA" * 9_999}
    images = (ToolImage(width=width, height=height, **about) for width, height in sizes)
    return ToolMessage(call="1", tool="t", content="it", images=tuple(images))


@pytest.mark.parametrize("card", [CLAUDE, HAIKU, GPT, GEMINI, MINE])
def test_an_image_of_a_tool_counts_as_one_that_is_attached(card: ModelCard):
    alike = attachment(width=640, height=480)
    messages = (NoteMessage(label="CONTEXT", text="x"), returned((640, 480)))

    assert media.returned_tokens(card, messages) == media.tokens(card, alike) > 0
    assert media.returned_most_tokens(card, messages, {}) == media.most_tokens(card, alike)


@pytest.mark.parametrize("card", [OFFLINE, MINE.model_copy(update={"images": False})])
def test_a_model_without_vision_gets_no_tool_image(card: ModelCard):
    messages = (returned((640, 480)),)

    assert media.returned(card, messages, {}) == {}
    assert media.returned_tokens(card, messages) == media.returned_most_tokens(card, messages, {}) == 0


@pytest.mark.parametrize(
    ("rules", "widths"),
    [
        (MediaRules(images_max=4), [[10, 20], [30]]),
        (MediaRules(image_max_px=25), [[10, 20]]),
        (MediaRules(image_max_bytes=8), []),
        (MediaRules(request_max_bytes=1_000 + 3 * 9), [[10, 20], [30]]),
    ],
)
def test_tool_images_beyond_the_models_limit_stay_text(rules, widths):
    card = MINE.model_copy(update={"media": rules})
    named = UserMessage(parts=(ImagePart(document_id="d"),))
    messages = (named, returned((10, 9), (20, 9)), returned((30, 9), (40, 9)))

    sent = media.returned(card, messages, {"d": attachment()})

    assert [[image.width for image in images] for images in sent.values()] == widths
    # What was sent once is sent again, whatever came since.
    before = media.returned(card, messages[:2], {"d": attachment()})
    assert before == {at: images for at, images in sent.items() if at < 2}
