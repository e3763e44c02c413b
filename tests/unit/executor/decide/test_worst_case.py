"""What a call can cost, what one that nobody saw end may have cost, and what a job does at its cap."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig, Routing
from wayline.contracts.budgets import Extended
from wayline.contracts.chat import Attachment, ImagePart, TextPart, ToolImage, ToolMessage, UserMessage
from wayline.contracts.jobs import JobOptions
from wayline.contracts.models import MediaRules, ModelCard, Prices, Rates
from wayline.contracts.money import Usage
from wayline.executor.decide.actions import CallModel, Complete, Fail, Park, Reroute
from wayline.executor.decide.worst_case import (
    Need,
    fitted,
    most_tokens,
    no_room,
    shortfall,
    unsettled,
    when_refused,
    worst_usd,
)
from wayline.executor.prompt.assemble import PromptHashes
from wayline.llm import ModelRequest, cost
from wayline.llm.media import BESIDE_TOKENS_MAX
from wayline.llm.output_room import ANSWER_TOKENS_MIN
from wayline.llm.tokens import WIRE_TOKENS_MAX
from wayline.testkit.jobs import job_with

from ..logs import AT, OTHER, PRIMARY, SMALL, STRONG, Log, card

UNPRICED, LOCAL = card("acme/new", None), card("offline/offline", None)
CENT = Decimal("0.01")
REFUSED = Extended(granted=False, held_usd=Decimal(0), left_usd=Decimal(0), limited_by="march")
PARK = JobOptions(at_cap="park")
PREFIX = (
    e.Segment(part="tools", hash="t", count=1, tokens=200),
    e.Segment(part="messages", hash="m", count=2, tokens=100),
)


def request(of=PRIMARY, text: str = "why?") -> ModelRequest:
    asked = UserMessage(parts=(TextPart(text=text),))
    return ModelRequest(card=of, system="", messages=(asked,), tools=(), max_output_tokens=100, attempt_id="a")


def naming(image: Attachment, *, of: ModelCard) -> ModelRequest:
    """The same request with an image beside its text."""
    asked = UserMessage(parts=(TextPart(text="why?"), ImagePart(document_id=image.document_id)))
    return replace(request(of), messages=(asked,), attachments={image.document_id: image})


def refused(log: Log, *, by: Extended = REFUSED, of=PRIMARY, worst: Decimal | None = CENT):
    return when_refused(log.job, request(of), by, worst_usd=worst, prefix=(), expires_at=AT + timedelta(days=7))


def test_the_worst_case_is_the_densest_prompt_and_the_longest_answer():
    most = worst_usd(request(), most_tokens(request(), PREFIX), at=AT)

    assert most_tokens(request(), PREFIX) == 300 * 8 // 3 + 3 * WIRE_TOKENS_MAX
    assert most == (Decimal(848) * 1 + 100 * 2) / 1_000_000


@pytest.mark.parametrize("text", ["8675309," * 500, '{"a":[1,{"b":[2]}]}' * 300, "\U0001f9ff" * 800])
def test_the_cap_holds_for_prompts_of_a_token_for_each_byte(text: str):
    asking = request(text=text)
    prompt_tokens = most_tokens(asking, PromptHashes().segments(asking))
    bytes_sent = len(text.encode())

    allowed = worst_usd(asking, prompt_tokens, at=AT)
    billed = cost(PRIMARY, Usage(input=bytes_sent, output=asking.max_output_tokens), at=AT)
    assert allowed is not None and billed is not None
    assert billed <= allowed < 2 * billed


def test_a_prompt_has_no_more_tokens_than_its_models_window():
    assert most_tokens(request(card("acme/primary", context_window=500)), PREFIX) == 500


def test_an_image_counts_by_its_models_rule_beside_the_densest_text():
    seeing = card("acme/primary", images=True, media=MediaRules(patch_px=10, patches_max=50))
    image = Attachment(
        document_id="d", name="a", media_type="image/png", sha256="0" * 64, size_bytes=9, width=80, height=41
    )

    alone, with_image = request(seeing), naming(image, of=seeing)

    beside = most_tokens(with_image, PromptHashes().segments(with_image)) - most_tokens(
        alone, PromptHashes().segments(alone)
    )
    # 8 by 5 squares, and the part itself as text: it is not what is sent, but it is less.
    assert 40 + BESIDE_TOKENS_MAX <= beside <= 40 + BESIDE_TOKENS_MAX + 100


def test_a_tool_image_counts_by_model_rule_not_bytes():
    seeing = card("acme/primary", images=True, media=MediaRules(patch_px=10, patches_max=50))
    about = {"media_type": "image/png", "sha256": "0" * 64, "size_bytes": 99_999, "content_base64": "AAAA" * 33_333}
    result = ToolMessage(call="1", tool="t", content="", images=(ToolImage(width=80, height=41, **about),))

    alone = request(seeing)
    with_image = replace(alone, messages=(*alone.messages, result))

    estimated = sum(part.tokens for part in PromptHashes().segments(with_image)) - 40
    beside = most_tokens(with_image, PromptHashes().segments(with_image)) - most_tokens(
        alone, PromptHashes().segments(alone)
    )
    assert estimated < 200
    assert 40 + BESIDE_TOKENS_MAX <= beside <= 40 + BESIDE_TOKENS_MAX + 250
    other = replace(with_image, messages=(*alone.messages, result.model_copy(update={"images": changed(result)})))
    assert PromptHashes().segments(other)[-1].hash != PromptHashes().segments(with_image)[-1].hash


def changed(result: ToolMessage) -> tuple[ToolImage, ...]:
    """Its images with other bytes."""
    return tuple(image.model_copy(update={"sha256": "1" * 64}) for image in result.images)


def test_an_image_may_fill_the_window_of_an_unknown_model():
    image = Attachment(document_id="d", name="a", media_type="image/png", sha256="0" * 64, size_bytes=9)
    asked = naming(image, of=PRIMARY)

    assert most_tokens(asked, PromptHashes().segments(asked)) == PRIMARY.context_window


def test_instructions_beside_the_prompt_count():
    told = most_tokens(request(card("acme/primary", tools="json")), PREFIX)
    asked = most_tokens(replace(request(), output_schema={"type": "object"}), PREFIX)

    assert told > asked > most_tokens(request(), PREFIX)


def test_a_local_call_costs_zero_and_an_unpriced_one_is_unknown():
    assert worst_usd(request(LOCAL), 848, at=AT) == 0
    assert worst_usd(request(UNPRICED), 848, at=AT) is None


CAP = Decimal("0.001")
WRITER = card("acme/primary", Prices(rates=Rates(input=Decimal(0), output=Decimal(1))))
"""A cap of a tenth of a cent pays a thousand tokens of it."""


def writing(log: Log, room: int = 4_096) -> int:
    """The room for output that a call of the job gets."""
    asked = replace(request(WRITER), max_output_tokens=room)
    return fitted(log.job, asked, most_tokens(asked, PREFIX)).max_output_tokens


def capped(**more: object) -> Log:
    log = Log(held_usd=Decimal(0), budget_usd=CAP, cards=(WRITER,), **more)  # type: ignore[arg-type]
    limits = log.events[1].limits.model_copy(update={"max_output_tokens": 4_096})  # type: ignore[attr-defined]
    log.events[1] = log.events[1].model_copy(update={"limits": limits})
    return log


def test_a_call_gets_the_room_that_the_jobs_own_budget_pays():
    assert writing(capped()) == 1_000
    assert writing(capped(), room=300) == 300, "all that it wants"
    assert writing(Log(cards=(WRITER,))) == 4_096, "no money is held for it"
    assert writing(capped().say(e.BudgetRaised, budget_usd=2 * CAP)) == 2_000


def test_a_call_never_gets_less_room_than_it_needs():
    poor = capped()
    poor.say(e.BudgetRaised, budget_usd=CAP / 10)
    long = capped().ask()
    long.answer("much", "t").result()
    long.events[-3] = long.events[-3].model_copy(update={"usage": Usage(output=900), "cost_usd": CAP / 10})
    seen = e.Observed(model="acme/primary", slot="primary", jobs=5, calls=1, output_tokens=9, longest_tokens=1_500)
    known = capped()
    candidates = known.job.routing.candidates.model_copy(update={"observed": (seen,)})
    known.events[1] = known.events[1].model_copy(update={"candidates": candidates})

    assert writing(poor) == ANSWER_TOKENS_MIN, "which is more than 100 tokens: the budget refuses it"
    assert writing(long) == 900 * 5 // 4, "about as much as its longest call"
    assert writing(known) == 1_500, "as much as the agent's recent jobs needed"
    assert writing(capped(options=JobOptions(max_output_tokens=2_000)), room=2_000) == 2_000, "it asked for that"


def test_a_cut_calls_cost_lies_between_received_and_worst():
    nothing = unsettled(request(), CENT, seen=None, streamed_bytes=0)
    text = unsettled(request(), CENT, seen=None, streamed_bytes=80)
    counted = unsettled(request(), CENT, seen=Usage(input=1_000, output=3), streamed_bytes=80)

    assert nothing == e.Bounds(lower_usd=Decimal(0), upper_usd=CENT)
    assert text == e.Bounds(lower_usd=Decimal("0.00002"), upper_usd=CENT)
    assert counted == e.Bounds(lower_usd=Decimal("0.00102"), upper_usd=Decimal("0.0012"))


def test_the_bounds_never_cross_and_an_unknown_price_stays_unknown():
    long = unsettled(request(), Decimal("0.0001"), seen=None, streamed_bytes=8_000)

    assert long.upper_usd == long.lower_usd == Decimal("0.002")
    assert unsettled(request(UNPRICED), None, seen=None, streamed_bytes=80) == e.Bounds(lower_usd=None, upper_usd=None)


def test_without_a_budget_or_a_cost_nothing_is_held():
    assert shortfall(Log().job, CENT) is None
    assert shortfall(Log().job, None) is None
    assert shortfall(Log(held_usd=Decimal(0)).job, Decimal(0)) is None


def test_what_is_held_already_is_not_asked_for_again():
    log = Log(held_usd=CENT)

    assert shortfall(log.job, CENT) is None
    assert shortfall(log.job, 2 * CENT) == Need(2 * CENT)
    log.ask(held_usd=Decimal(1)).answer("half", "t").result()
    assert shortfall(log.job, Decimal("0.5")) is None
    assert shortfall(log.job, Decimal("0.6")) == Need(Decimal("1.1")), "0.5 is spent"


def test_the_upper_bound_of_a_lost_call_counts_as_spent():
    log = Log(held_usd=CENT).ask().fail("lost", unsettled=e.Bounds(lower_usd=Decimal(0), upper_usd=CENT))

    assert shortfall(log.job, CENT) == Need(2 * CENT)


def test_an_unknown_price_is_asked_about_where_there_is_a_budget():
    assert shortfall(Log(held_usd=CENT).job, None) == Need(None)
    assert shortfall(job_with(Log(held_usd=CENT).job, cost_usd=None), CENT) == Need(None)


def test_a_budget_of_nothing_held_is_a_budget():
    log = Log()
    log.events[1] = log.events[1].model_copy(update={"left_usd": Decimal(1)})

    assert shortfall(log.job, CENT) == Need(CENT)


def test_a_refused_unknown_price_falls_back_or_fails():
    log = Log(held_usd=CENT, fallbacks=("other/spare",))

    rerouted = refused(log, worst=None)
    assert isinstance(rerouted, Reroute) and rerouted.route.name == "other/spare"
    failed = refused(Log(held_usd=CENT), of=UNPRICED, worst=None)
    assert isinstance(failed, Fail) and failed.error.code == "price_unknown"
    assert "acme/new" in failed.error.message and "'march'" in failed.error.message


def test_a_job_at_its_cap_answers_partially_naming_the_budget():
    log = Log(held_usd=CENT).ask().answer("half", "t").result()

    assert refused(log) == Complete("half", partial=True, reason="budget 'march' has no room for a call of up to $0.01")


def test_at_its_cap_with_nothing_said_it_fails():
    failed = refused(Log(held_usd=CENT), by=REFUSED.model_copy(update={"limited_by": "job"}))

    assert isinstance(failed, Fail) and failed.error.code == "budget_exhausted"
    assert failed.error.message.startswith("the job's own budget has no room for a call of up to $0.01")


def test_the_default_cap_is_named_with_the_option_that_raises_it():
    of_the_job = REFUSED.model_copy(update={"limited_by": "job"})
    given, raised = Log(held_usd=CENT, options=JobOptions(budget_usd=CENT)), Log(held_usd=CENT)
    raised.say(e.BudgetRaised, budget_usd=CENT)

    assert no_room(Log(held_usd=CENT, budget_usd=Decimal("0.10")).job, of_the_job, CENT) == (
        "the $0.1 that jobs may spend without an options.budget_usd has no room for a call of up to $0.01"
    )
    for log in (given, raised):
        assert no_room(log.job, of_the_job, CENT) == "the job's own budget has no room for a call of up to $0.01"


def test_a_parking_job_parks_at_its_cap_and_resumes_there():
    log = Log(held_usd=CENT, options=PARK).ask().answer("half", "t").result()

    parked = refused(log)
    assert isinstance(parked, Park)
    assert (parked.waiting.why, parked.waiting.expires_at) == ("budget", AT + timedelta(days=7))
    own = refused(log, by=REFUSED.model_copy(update={"limited_by": "job"}))
    assert isinstance(own, Park) and (parked.waiting.budget, own.waiting.budget) == ("march", None)
    log.say(e.JobParked, waiting=parked.waiting, signals_seen=0, kept_usd=Decimal("0.5"))
    assert log.job.money.held_usd == Decimal("0.5"), "the rest was given back"
    log.say(e.JobClaimed, executor="y", epoch=2, owner="2:1", attempt=1)
    log.say(e.JobResumed).say(e.BudgetRaised, budget_usd=Decimal(2))
    assert log.next == CallModel(2, 1)


def test_each_wait_has_a_name_of_its_own():
    log = Log(held_usd=CENT, options=PARK)
    first = refused(log).waiting
    log.say(e.JobParked, waiting=first, signals_seen=0)
    log.say(e.JobClaimed, executor="y", epoch=2, owner="2:1", attempt=1).say(e.JobResumed)

    assert refused(log).waiting.wait_id != first.wait_id


def test_an_expired_budget_wait_ends_the_job_partially():
    log = Log(held_usd=CENT, options=PARK).ask().answer("half", "t").result()
    parked = refused(log)
    log.say(e.JobParked, waiting=parked.waiting, signals_seen=0)
    log.say(e.JobClaimed, executor="y", epoch=2, owner="2:1", attempt=1).say(e.JobResumed)
    log.say(e.DecisionMade, decision_id=parked.waiting.wait_id, outcome="expired")

    ended = refused(log)

    assert isinstance(ended, Complete) and ended.partial
    assert isinstance(refused(log.say(e.BudgetRaised, budget_usd=CENT)), Park), "raised after all"


def test_a_wait_that_was_answered_does_not_run_out():
    """Its time is up while the job goes on, or a moment after the raise: the next cap finds it willing to wait."""
    raised, gone_on = (Log(held_usd=CENT, options=PARK).ask().answer("half", "t").result() for _ in range(2))
    for log in (raised, gone_on):
        parked = refused(log)
        log.say(e.JobParked, waiting=parked.waiting, signals_seen=0)
        log.say(e.JobClaimed, executor="y", epoch=2, owner="2:1", attempt=1).say(e.JobResumed)
        log.say(e.BudgetRaised, budget_usd=CENT) if log is raised else log.ask(step=2).answer("more", "t").result()
        log.say(e.DecisionMade, decision_id=parked.waiting.wait_id, outcome="expired")

        assert isinstance(refused(log), Park)


def test_a_cheaper_slot_takes_over_if_its_call_fits():
    slots = {"fast": "tiny/small", "primary": "acme/strong"}
    log = Log(held_usd=CENT, slots=slots, options=PARK)
    strong = log.job.routing.route.model_copy(update={"model": "strong"})
    log.events[1] = log.events[1].model_copy(update={"route": strong})
    some = REFUSED.model_copy(update={"left_usd": CENT})

    down = refused(log, by=some, of=STRONG)
    assert isinstance(down, Reroute) and (down.cause, down.route.name) == ("budget", "tiny/small")
    assert isinstance(refused(log, of=STRONG), Park), "nothing is left for a cheap one either"
    proud = AgentConfig(routing=Routing(budget_aware=False))
    log.events[1] = log.events[1].model_copy(update={"config": proud})
    assert isinstance(refused(log, by=some, of=STRONG), Park)
    assert {OTHER, SMALL} <= set(log.cards)


def test_a_cheaper_slot_whose_call_does_not_fit_is_passed_over():
    slots = {"fast": "tiny/small", "primary": "acme/middle", "escalation": "acme/strong"}
    middle = card("acme/middle", Prices(rates=Rates(input=Decimal(9), output=Decimal(18))))
    log = Log(held_usd=CENT, slots=slots, cards=(middle, STRONG, SMALL))
    assert log.job.routing.route is not None
    strong = log.job.routing.route.model_copy(update={"model": "strong", "slot": "escalation"})
    log.events[1] = log.events[1].model_copy(update={"route": strong})

    down = refused(log, by=REFUSED.model_copy(update={"left_usd": Decimal("0.0012")}), of=STRONG)

    assert isinstance(down, Reroute) and down.route.name == "tiny/small"


def test_a_cheaper_model_must_bound_the_cost_of_images():
    rules = MediaRules(patch_px=10, patches_max=50)
    seeing, blind = (card("tiny/small", images=True, media=each) for each in (rules, MediaRules()))
    strong = card("acme/strong", STRONG.prices, images=True, media=rules)
    image = Attachment(
        document_id="d", name="a", media_type="image/png", sha256="0" * 64, size_bytes=9, width=80, height=41
    )
    asked = naming(image, of=strong)
    some = REFUSED.model_copy(update={"left_usd": CENT})

    def instead(small: ModelCard):
        log = Log(held_usd=CENT, slots={"fast": "tiny/small", "primary": "acme/strong"}, cards=(strong, small))
        assert log.job.routing.route is not None
        log.events[1] = log.events[1].model_copy(
            update={"route": log.job.routing.route.model_copy(update={"model": "strong"})}
        )
        prefix = PromptHashes().segments(asked)
        return when_refused(log.job, asked, some, worst_usd=CENT, prefix=prefix, expires_at=AT + timedelta(days=7))

    down = instead(seeing)
    assert isinstance(down, Reroute) and down.route.name == "tiny/small"
    assert not isinstance(instead(blind), Reroute), "nobody knows how many tokens it makes of them"
