"""What images and files are to a model, by its card: how many tokens they take, and whether it takes them at all. Pure.

The rules are data of each card; where the figures of the bundled ones are from, their files say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil

from wayline.contracts.chat import Attachment, ChatMessage, Part, ToolImage, UserMessage
from wayline.contracts.models import MediaRules, ModelCard
from wayline.llm.inputs import kind_of
from wayline.llm.prices import LOCAL
from wayline.llm.tokens import BYTES_PER_TOKEN, estimate

IMAGE_TOKENS = 1_500
"""What is expected of an image where nobody has said how small it is made."""
NOTHING: Mapping[str, Attachment] = {}
BESIDE_TOKENS_MAX = 64
"""What a provider adds to an image or a page: Claude was measured to add 40 to one that it made smaller."""


def tokens(card: ModelCard, attachment: Attachment) -> int:
    """Estimate the prompt tokens of an attachment."""
    kind, rules = kind_of(attachment.media_type), card.media
    if kind == "image":
        return _image(rules, attachment, unknown=IMAGE_TOKENS)
    text = attachment.text_tokens
    if text is None:
        text = ceil(attachment.text_bytes / BYTES_PER_TOKEN)
    return (attachment.pages or 0) * rules.page_tokens + text


def parts_tokens(card: ModelCard, parts: Iterable[Part], attachments: Iterable[Attachment]) -> int:
    """Estimate the prompt tokens of a message's parts; an unknown attachment counts nothing."""
    known = {attachment.document_id: attachment for attachment in attachments}
    total = 0
    for part in parts:
        if part.type == "text":
            total += estimate(part.text)
        elif part.document_id in known:
            total += tokens(card, known[part.document_id])
    return total


def most_tokens(card: ModelCard, attachment: Attachment) -> int:
    """Return the most prompt tokens it can take: the whole window where the card has no rule."""
    kind, rules, text = kind_of(attachment.media_type), card.media, _text(attachment)
    if kind == "text":
        return text
    if rules.patches_max is None:
        return card.context_window
    if kind == "image":
        return _image(rules, attachment, unknown=card.context_window) + BESIDE_TOKENS_MAX
    # A page is an image of its provider's making, and no image has more.
    page = max(rules.page_tokens, ceil(rules.patches_max * rules.patch_tokens)) + BESIDE_TOKENS_MAX
    return (attachment.pages or 0) * page + text


def problem(card: ModelCard, attachments: Sequence[Attachment]) -> str | None:
    """Return why a model cannot be sent these, in a sentence without its name; None if it can."""
    return next(_problems(card, attachments), None)


def named(messages: Iterable[ChatMessage], attachments: Mapping[str, Attachment]) -> list[Attachment]:
    """Return the attachments that messages name, each as often as named."""
    if not attachments:
        return []
    users = (message for message in messages if isinstance(message, UserMessage))
    ids = (part.document_id for message in users for part in message.parts if part.type != "text")
    return [attachments[document_id] for document_id in ids if document_id in attachments]


def returned(
    card: ModelCard, messages: Sequence[ChatMessage], attachments: Mapping[str, Attachment]
) -> dict[int, tuple[ToolImage, ...]]:
    """Return the images of tools' results that a model is sent, by the place of the message; the rest are words to it.

    What it takes is given to attachments first and then in the order of the history, so that what was sent once is sent
    again, however long the history gets.
    """
    found: dict[int, tuple[ToolImage, ...]] = {}
    if not card.images or card.provider in LOCAL:
        return found
    taken: _RequestMedia | None = None
    for at, message in enumerate(messages):
        if message.role == "tool" and message.images:
            taken = taken or _RequestMedia(card.media, named(messages, attachments))
            if sent := tuple([image for image in message.images if taken.takes(image)]):
                found[at] = sent
    return found


def returned_tokens(
    card: ModelCard, messages: Sequence[ChatMessage], attachments: Mapping[str, Attachment] = NOTHING
) -> int:
    """Estimate what images of tools' results take of a model's prompt."""
    sent = returned(card, messages, attachments)
    if not sent:
        return 0
    return sum(_image(card.media, image, unknown=IMAGE_TOKENS) for images in sent.values() for image in images)


def returned_most_tokens(
    card: ModelCard, messages: Sequence[ChatMessage], attachments: Mapping[str, Attachment]
) -> int:
    """Return the most they can take: the whole window where nobody has said how its model counts."""
    images = [image for sent in returned(card, messages, attachments).values() for image in sent]
    if not images:
        return 0
    if card.media.patches_max is None:
        return card.context_window
    return sum(_image(card.media, image, unknown=card.context_window) + BESIDE_TOKENS_MAX for image in images)


class _RequestMedia:
    """Counts the media of one request, so that it stays within what its model takes."""

    def __init__(self, rules: MediaRules, attached: Sequence[Attachment]) -> None:
        self._rules = rules
        self._images = sum(kind_of(one.media_type) == "image" for one in attached)
        self._bytes = sum(one.size_bytes for one in attached)

    def takes(self, image: ToolImage) -> bool:
        """Count one more image, if the model takes it; return whether it does."""
        rules, images, size = self._rules, self._images + 1, self._bytes + image.size_bytes
        limits = (
            (images, rules.images_max),
            (image.size_bytes, rules.image_max_bytes),
            (max(image.width, image.height), rules.image_max_px),
            (size, rules.request_max_bytes),
        )
        if any(most is not None and wanted > most for wanted, most in limits):
            return False
        self._images, self._bytes = images, size
        return True


def _image(rules: MediaRules, image: Attachment | ToolImage, *, unknown: int) -> int:
    if image.width is None or image.height is None:
        return unknown if rules.patches_max is None else ceil(rules.patches_max * rules.patch_tokens)
    patches = ceil(image.width / rules.patch_px) * ceil(image.height / rules.patch_px)
    if rules.patches_max is None:
        return min(unknown, ceil(patches * rules.patch_tokens))
    return ceil(min(patches, rules.patches_max) * rules.patch_tokens)


def _text(attachment: Attachment) -> int:
    # Nobody has looked at its characters: a token for each byte.
    return attachment.text_bytes


def _problems(card: ModelCard, attachments: Sequence[Attachment]) -> Iterator[str]:
    kinds = [kind_of(attachment.media_type) for attachment in attachments]
    for attachment, kind in zip(attachments, kinds, strict=True):
        if kind is None:
            yield f"{attachment.name} is {attachment.media_type}, and models are sent images, PDF and text"
        elif kind == "image" and not card.images:
            yield f"it takes no images, and {attachment.name} is one"
        elif kind == "pdf" and not card.files:
            yield f"it takes no files, and {attachment.name} is a PDF"
    if card.provider not in LOCAL:
        yield from _too_much(
            card.media, attachments, [a for a, kind in zip(attachments, kinds, strict=True) if kind == "image"]
        )


def _too_much(rules: MediaRules, attachments: Sequence[Attachment], images: Sequence[Attachment]) -> Iterator[str]:
    if rules.images_max is not None and len(images) > rules.images_max:
        yield f"it takes at most {rules.images_max} images at once, and these are {len(images)}"
    for image in images:
        if rules.image_max_bytes is not None and image.size_bytes > rules.image_max_bytes:
            yield f"it takes images of at most {rules.image_max_bytes} bytes, and {image.name} has {image.size_bytes}"
        longer = max(image.width or 0, image.height or 0)
        if rules.image_max_px is not None and longer > rules.image_max_px:
            yield f"it takes images of at most {rules.image_max_px} pixels a side, and {image.name} has {longer}"
    pages = sum(attachment.pages or 0 for attachment in attachments)
    if rules.pages_max is not None and pages > rules.pages_max:
        yield f"it takes at most {rules.pages_max} pages of PDF at once, and these are {pages}"
    size = sum(attachment.size_bytes for attachment in attachments)
    if rules.request_max_bytes is not None and size > rules.request_max_bytes:
        yield f"it takes at most {rules.request_max_bytes} bytes of files at once, and these are {size}"
