"""When a helper model ranks what a search found, how it is asked, and what its answer may change."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from wayline.contracts import events as e
from wayline.contracts import ids
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, Citation, TextPart, ToolCall, ToolMessage, UserMessage
from wayline.contracts.framed_words import is_framed
from wayline.contracts.jobs import Failure
from wayline.contracts.models import ModelCard
from wayline.contracts.money import Usage
from wayline.contracts.reranking import RERANKED_MAX, FoundPassage, FoundPassages
from wayline.contracts.tools import BUILTIN, RECALL, Effect, ToolDefinition
from wayline.executor.decide.actions import CallModel, Complete, NoteLost, Rerank, Summarize
from wayline.executor.decide.rerank import LOST, NO_HELPER, order_of, question
from wayline.executor.prompt.builtin_tools import shown_instead, whole_result
from wayline.llm.tokens import estimate

from ..logs import PRIMARY, Log

FLASH = ModelCard(provider="acme", model="flash", tier="flash", context_window=200_000)
OFFLINE = ModelCard(provider="offline", model="extractive", tier="flash")
TOOLS = (ToolDefinition(name="search_knowledge", server=BUILTIN), ToolDefinition(name=RECALL))


def passage(n: int, *, text: str = "", **more: Any) -> FoundPassage:
    quote = text or f"Passage {n}."
    return FoundPassage(citation=Citation(document=f"d{n}", quote=quote, chunk_id=f"c{n}"), **more)


def found(count: int = 4, *, top: int = 2, **more: Any) -> FoundPassages:
    return FoundPassages(query="what?", top=top, passages=tuple(passage(n, **more) for n in range(count)), note="(so.)")


class Searched(Log):
    """A log whose search found more than it shows."""

    def __init__(self, *, some: FoundPassages | None = None, **fields: Any) -> None:
        super().__init__(**{"config": AgentConfig(rerank=True), "cards": (PRIMARY, FLASH), **fields})
        self.some = found() if some is None else some

    def search(self, *calls: str, **more: Any) -> Searched:
        n = self.job.model.step + 1
        named = {"step": n, "attempt": 1, "attempt_id": ids.attempt_id("default", "j", n, 1)}
        self.say(e.ModelRequested, **named, provider="acme", model="primary", tools=TOOLS if n == 1 else None)
        wanted = tuple(ToolCall(call=call, tool="search_knowledge") for call in calls or ("1",))
        answer = {"message": AssistantMessage(tool_calls=wanted), "stop_reason": "tools", "duration_ms": 1}
        self.say(e.ModelCompleted, **named, **answer, usage=Usage(input=1, output=1), cost_usd=Decimal(0))
        for call in wanted:
            about = {"step": n, "call": call.call, "tool": call.tool}
            self.say(e.ToolRequested, **about, arguments={}, effect=Effect.READ, key=f"k{n}{call.call}")
            fields = {
                "status": "success",
                "content": self.some.shown(range(min(2, len(self.some.passages)))),
                "found": self.some,
                **more,
            }
            self.say(e.ToolCompleted, **about, **fields)
        return self

    def aside(self, call: str = "1") -> dict[str, Any]:
        return {"purpose": "rerank", "about": f"1/{call}", "attempt_id": f"default/j/1/a{call}"}

    def ask_helper(self, call: str = "1") -> Log:
        return self.say(e.AuxiliaryRequested, **self.aside(call), provider="acme", model="flash")

    @property
    def messages(self) -> list[ToolMessage]:
        return [m for m in self.job.conversation.messages if isinstance(m, ToolMessage)]


def chosen(log: Searched, *order: int, call: str = "1") -> Log:
    cited = tuple(log.some.passages[at].citation for at in order)
    text = {"content": log.some.shown(order), "citations": cited}
    return log.say(e.PassagesReranked, step=1, call=call, reranked=True, order=order, **text)


def test_a_search_is_ranked_by_the_flash_model_once():
    log = Searched().search()

    action = log.next
    assert isinstance(action, Rerank)
    assert (action.card, action.done.found, action.why) == (FLASH, log.some, "")
    log.ask_helper()
    log.say(e.AuxiliaryCompleted, **log.aside(), provider="acme", model="flash", cost_usd=Decimal("0.001"))
    chosen(log, 3, 0)
    [message] = log.messages
    assert message.content == "[1] d3\nPassage 3.\n\n[2] d0\nPassage 0.\n\n(so.)"
    assert [one.chunk_id for one in message.citations] == ["c3", "c0"]
    assert log.next == CallModel(2, 1)
    assert log.job.money.costs.aux == {"rerank": Decimal("0.001")}


def test_every_search_of_a_step_is_ranked_in_turn():
    log = Searched().search("1", "2")

    log.ask_helper("1").say(e.AuxiliaryFailed, **log.aside(), error=Failure(code="overloaded", message="busy"))
    log.say(e.PassagesReranked, step=1, call="1", reranked=False, reason="busy")

    action = log.next
    assert isinstance(action, Rerank)
    assert (action.card, action.done.call) == (FLASH, "2")


def test_a_call_whose_holder_was_killed_is_not_made_again():
    log = Searched().search()
    log.ask_helper()

    assert isinstance(log.next, NoteLost)
    log.say(e.AuxiliaryFailed, **log.aside(), error=Failure(code=e.LOST, message="gone"))

    action = log.next
    assert isinstance(action, Rerank)
    assert (action.card, action.why) == (None, LOST)
    log.say(e.PassagesReranked, step=1, call="1", reranked=False, reason=action.why)
    assert log.next == CallModel(2, 1)
    assert log.messages[0].content == log.some.shown((0, 1))


def test_the_order_stays_with_the_offline_model_alone():
    log = Searched(cards=(OFFLINE,))
    log.say(e.JobRerouted, route=log.job.routing.route.model_copy(update={"provider": "offline"}), cause="fallback")

    action = log.search().next

    assert isinstance(action, Rerank)
    assert (action.card, action.why) == (None, NO_HELPER)


def test_one_passage_is_not_ranked():
    action = Searched(some=found(1)).search().next

    assert isinstance(action, Rerank)
    assert action.card is None


def test_a_failed_search_and_one_without_passages_ask_nobody():
    log = Searched().search(found=None)

    assert log.next == CallModel(2, 1)


def test_what_a_prompt_has_held_is_never_another_one_later():
    log = Searched().search()
    log.say(e.ModelRequested, step=2, attempt=1, attempt_id="default/j/2/1", provider="acme", model="primary")
    log.answer("", "search_knowledge", stop="tools")

    chosen(log, 3, 2)

    assert log.messages[0].content == log.some.shown((0, 1))
    assert log.job.tools.unranked == ()


def test_a_job_at_its_step_limit_pays_for_no_order():
    assert isinstance(Searched(max_steps=1).search().next, Complete)


def test_what_a_model_has_chosen_of_is_not_summarised_as_well():
    log = Searched(config=AgentConfig(rerank=True, summarize_results=True)).search(full="all of it")
    other = Searched(config=AgentConfig(rerank=True, summarize_results=True)).search(full="all of it")

    chosen(log, 3, 2)
    other.say(e.PassagesReranked, step=1, call="1", reranked=False, reason="busy")

    assert log.next == CallModel(2, 1)
    assert isinstance(other.next, Summarize)


@pytest.mark.parametrize(
    ("answer", "order"),
    [
        ("[3, 1]", (2, 0)),
        ("[4]", (3, 0)),
        ("[1, 2, 3]", (0, 1)),
        ("[2, 2]", "twice"),
        ("[5]", "not there"),
        ("[0]", "not there"),
        ("[]", "no passage"),
        ("the third", "no list"),
        (f"[{'9' * 5_000}]", "no list"),
    ],
)
def test_an_answer_can_only_choose_what_was_found(answer: str, order: tuple[int, ...] | str):
    got = order_of(found(4), answer)

    assert got == order if isinstance(order, tuple) else order in got


def asked_text(card: ModelCard, some: FoundPassages) -> str:
    log = Searched(some=some).search()
    action = log.next
    assert isinstance(action, Rerank)
    request = question(card, action.done, attempt_id="a")
    assert request is not None
    [message] = request.messages
    assert isinstance(message, UserMessage)
    [part] = message.parts
    assert isinstance(part, TextPart)
    assert estimate(part.text) + request.max_output_tokens < card.context_window
    return part.text


@pytest.mark.parametrize(("words", "window"), [("late order ", 4_000), ("订单晚了", 6_000)])
def test_a_helper_is_shown_as_much_as_it_has_room_for(words: str, window: int):
    small = FLASH.model_copy(update={"context_window": window})
    some = found(40, text=words * 2_000)

    text, cut = asked_text(FLASH, some), asked_text(small, some)

    assert f"[{RERANKED_MAX}]\n" in text and f"[{RERANKED_MAX + 1}]\n" not in text
    assert len(text) < 25_000
    assert len(cut) < len(text)
    action = Searched(some=some).search().next
    assert isinstance(action, Rerank)
    assert question(FLASH.model_copy(update={"context_window": 500}), action.done, attempt_id="a") is None


def test_a_strangers_passage_is_framed_for_the_helper():
    some = FoundPassages(query="what?", top=1, passages=(passage(1), passage(2, untrusted=True)))

    text = asked_text(FLASH, some)

    first, second = text.split("[1]\n")[1].split("\n\n[2]\n")
    assert (is_framed(first), is_framed(second)) == (False, True)


def test_a_repeat_shows_the_chosen_and_recall_reads_all():
    log = Searched().search()
    chosen(log, 3, 0)
    records = [[event.model_dump(mode="json") for event in log.events]]
    completed = next(event for event in records[0] if event["type"] == "tool.completed")

    again, whole = shown_instead(records, 1, "1"), whole_result(log.job, completed)

    assert again["content"] == log.some.shown((3, 0))
    assert [one["chunk_id"] for one in again["citations"]] == ["c3", "c0"]
    assert shown_instead(records, 1, "2") == {}
    assert all(f"Passage {n}." in whole.text for n in range(4))
