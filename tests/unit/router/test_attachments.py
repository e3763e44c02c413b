"""Which documents a job can be given, and what they make of its route."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts.agents import Agent, AgentConfig, Routing
from wayline.contracts.chat import Attachment, FilePart, ImagePart, TextPart
from wayline.contracts.errors import Reject
from wayline.contracts.events import JobRouted, JobSubmitted, Warm
from wayline.contracts.jobs import JobOptions, Route, SubmitJob
from wayline.contracts.knowledge import AttachmentList
from wayline.contracts.models import CacheRules, MediaRules, ModelCard, Prices, Rates
from wayline.llm.media import BESIDE_TOKENS_MAX
from wayline.router.admission.conditions import Admitted
from wayline.router.admission.first_events import root, routed
from wayline.router.models.attachments import AttachmentLimits, fixed, given
from wayline.routing import RoutingInput, choose_again, choose_route, current_policy
from wayline.routing.estimate import shape_of

LIMITS = AttachmentLimits(files_max=3, total_max_bytes=1_000)
ASK = TextPart(text="What is it?")
PRICES = Prices(rates=Rates(input=Decimal(1), output=Decimal(1)))


def attachment(document_id: str, media_type: str = "image/png", **more: Any) -> Attachment:
    about = {"name": document_id, "sha256": "a" * 64, "size_bytes": 400}
    return Attachment(document_id=document_id, media_type=media_type, **{**about, **more})


def card(name: str, tier: Any = "standard", **more: Any) -> ModelCard:
    provider, _, model = name.partition("/")
    return ModelCard(provider=provider, model=model, tier=tier, prices=PRICES, **more)


CAT, NOTE = attachment("cat", width=280, height=28), attachment("note", "text/plain", text_bytes=400)
BLIND = card("a/blind")
SEEING = card("a/seeing", "premium", images=True, files=True, media=MediaRules(patches_max=100))
DESCRIBED = AttachmentList(attachments=(CAT, NOTE), waiting=("new",), refused={"old": "it was added before"})


def route(*parts: Any, attachments: tuple[Attachment, ...], config: AgentConfig | None = None, **options: Any) -> Route:
    job = SubmitJob(tenant="t", agent="a", input=(ASK, *parts), options=JobOptions(**options))
    cards = (BLIND, SEEING)
    config = config or AgentConfig(tools=())
    asked = RoutingInput(job, config, attachments=attachments)
    return choose_route(asked, default_model="offline/extractive", cards=cards).route


def refused(*parts: ImagePart | FilePart, limits: AttachmentLimits = LIMITS) -> tuple[str, str]:
    with pytest.raises(Reject) as caught:
        given(parts, DESCRIBED, limits)
    return caught.value.code, str(caught.value)


def test_each_document_is_given_once_with_the_bytes_it_has_now():
    parts = (ImagePart(document_id="cat"), FilePart(document_id="note"), ImagePart(document_id="cat", sha256="a" * 64))

    assert given(parts, DESCRIBED, LIMITS) == (CAT, NOTE)
    assert fixed((ASK, FilePart(document_id="note")), (NOTE,)) == (ASK, FilePart(document_id="note", sha256="a" * 64))


@pytest.mark.parametrize(
    ("part", "code", "says"),
    [
        (ImagePart(document_id="dog"), "unknown_document", "upload it with POST /v1/documents first"),
        (ImagePart(document_id="new"), "document_not_ready", "wait until GET /v1/documents/new says"),
        (ImagePart(document_id="old"), "document_unusable", "it was added before"),
        (ImagePart(document_id="cat", sha256="b" * 64), "document_changed", "a" * 64),
    ],
)
def test_an_attachment_that_cannot_be_given_gets_advice(part: ImagePart, code: str, says: str):
    told, reason = refused(ImagePart(document_id="cat"), part)

    assert told == code and says in reason


def test_too_much_at_once_names_the_setting():
    small = AttachmentLimits(files_max=3, total_max_bytes=799)

    code, reason = refused(ImagePart(document_id="cat"), FilePart(document_id="note"), limits=small)

    assert (code, "WAYLINE_ROUTER_FILES_MAX_BYTES" in reason, "800 bytes" in reason) == ("files_too_large", True, True)


def test_the_documents_type_decides_over_the_parts_type():
    named_as_file, named_as_image = FilePart(document_id="cat"), ImagePart(document_id="note")

    assert route(named_as_file, attachments=(CAT,)).name == "a/seeing"
    assert route(named_as_image, attachments=(NOTE,)).name == "a/blind"


def test_what_an_agent_has_pinned_counts_as_what_a_job_names():
    config = AgentConfig(tools=(), pinned=(ImagePart(document_id="cat"),))

    assert route(attachments=(CAT,), config=config).name == "a/seeing"
    assert route(attachments=(), config=AgentConfig(tools=())).name == "a/blind"


def test_a_model_that_takes_no_image_that_large_is_passed_over():
    large = attachment("cat", width=10, height=10, size_bytes=2_000)
    small = SEEING.model_copy(update={"tier": "standard", "model": "small", "media": MediaRules(image_max_bytes=1_000)})
    job = SubmitJob(tenant="t", agent="a", input=(ImagePart(document_id="cat"),))

    asked = RoutingInput(job, AgentConfig(tools=()), attachments=(large,))
    decided = choose_route(asked, default_model="offline/extractive", cards=(small, SEEING))
    with pytest.raises(Reject, match=r"a/small cannot take this job: it takes images of at most 1000 bytes") as caught:
        naming_it = job.model_copy(update={"options": JobOptions(model="a/small")})
        asked = RoutingInput(naming_it, AgentConfig(routing=Routing()), attachments=(large,))
        choose_route(asked, default_model="offline/extractive", cards=(small, SEEING))

    assert decided.route.name == "a/seeing"
    assert caught.value.code == "model_unfit"


def test_a_recorded_image_job_gets_its_route_again():
    job = SubmitJob(tenant="t", agent="a", input=(ASK, FilePart(document_id="cat")))
    config = AgentConfig(tools=())
    asked = RoutingInput(job, config, attachments=(CAT,))
    decided = choose_route(asked, default_model="offline/extractive", cards=(BLIND, SEEING))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    first = JobSubmitted(job_id="j", seq=1, at=at, trace=root("t", "j"), tenant="t", job=job, content_hash="c")
    admitted = Admitted(agent=Agent(name="a", version=1, config=config), cap_usd=Decimal("0.1"))
    record = routed(first, admitted, asked, decided)

    again = choose_again(job, JobRouted.model_validate_json(record.model_dump_json()), policy=current_policy())

    assert again.route.name == "a/seeing"
    assert again.route.estimated_cost_usd == decided.route.estimated_cost_usd is not None


def test_the_estimate_counts_an_image_as_the_model_does():
    job = SubmitJob(tenant="t", agent="a", input=(ASK, ImagePart(document_id="cat")))
    plain = shape_of(SubmitJob(tenant="t", agent="a", input=(ASK,)), AgentConfig(tools=()))

    shape = shape_of(job, AgentConfig(tools=()), attachments=(CAT,))

    assert shape.prompt_tokens == plain.prompt_tokens
    assert shape.first_on(SEEING) == plain.first_on(SEEING) + 10
    most = plain.most_on(SEEING, plain.known_tokens)
    assert shape.most_on(SEEING, shape.known_tokens) == most + 10 + BESIDE_TOKENS_MAX
    uncounted = SEEING.model_copy(update={"media": MediaRules()})
    assert shape.most_on(uncounted, shape.known_tokens) == SEEING.context_window


def test_a_warm_cache_holds_the_agents_pinned_documents_too():
    cached = CacheRules(kind="automatic", min_tokens=1_000)
    rates = Rates(input=Decimal(5), output=Decimal(5), cache_read=Decimal("0.1"))
    warm_one = SEEING.model_copy(update={"model": "warm", "cache": cached, "prices": Prices(rates=rates)})
    book = attachment("book", "text/plain", text_bytes=80_000)
    config = AgentConfig(tools=(), pinned=(TextPart(text="By the book."), FilePart(document_id="book")))
    job = SubmitJob(tenant="t", agent="a", input="Hello, how are you?")
    asked = RoutingInput(job, config, warm=Warm(model="a/warm", prefix_tokens=200), attachments=(book,))

    stayed = choose_route(asked, default_model="offline/extractive", cards=(BLIND, warm_one)).route
    left = choose_route(replace(asked, warm=None), default_model="offline/extractive", cards=(BLIND, warm_one)).route

    assert (left.name, stayed.name) == ("a/blind", "a/warm")
    assert "20203 tokens are warm in the cache of a/warm" in stayed.reason
