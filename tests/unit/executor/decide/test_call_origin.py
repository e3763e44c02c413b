"""What a log proves of a call that remembers: the user's own words, and nobody else's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from wayline.contracts.agents import AgentConfig
from wayline.contracts.call_origin import CallOrigin
from wayline.contracts.chat import AssistantMessage, NoteMessage, TextPart, ToolCall, UserMessage
from wayline.contracts.jobs import Parent, SubmitJob, TaintSource
from wayline.contracts.tools import BUILTIN, Effect, ToolDefinition
from wayline.executor.decide.approvals import cause
from wayline.executor.decide.call_origin import origin_of
from wayline.journal import Call, Job
from wayline.testkit.jobs import job_with

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SAVE = ToolDefinition(name="memory_save", effect=Effect.IDEMPOTENT, server=BUILTIN)


def user(text: str) -> UserMessage:
    return UserMessage(parts=(TextPart(text=text),), sent_at=NOW)


def job(*messages: Any, **fields: Any) -> Job:
    return job_with(job_id="j", tenant="default", at=NOW, messages=messages, offered=(SAVE,), **fields)


def saving(*quotes: str, fact: str = "Lives in Bonn.", tool: str = "memory_save") -> Call:
    facts = [{"fact": fact, "category": "profile", "quote": quote} for quote in quotes]
    return Call(ToolCall(call="1", tool=tool, arguments={"facts": facts}))


def quotes(of: Job, *texts: str) -> list[str]:
    origin = origin_of(of, saving(*texts))
    assert origin is not None
    return [one.quote for one in origin.quotes]


def test_a_quote_is_found_in_other_spacing_and_signs():
    said = user("Well,  I don\u2019t eat\nmeat. I live in Bonn!")

    assert quotes(job(said), "I don't eat meat", "i live in bonn", "I live in Paris") == [
        "I don't eat meat",
        "i live in bonn",
    ]


def test_no_words_but_the_users_are_a_quote():
    note = NoteMessage(label="CONTEXT", text="I live in Bonn", quoted=True)
    assistant = AssistantMessage(text="You said: I live in Bonn")

    assert quotes(job(user("hello"), note, assistant), "I live in Bonn") == []


def test_what_a_parent_job_wrote_is_no_users_word():
    parent = Parent(job_id="p", step=1, call="1", depth=1)

    assert quotes(job(user("I live in Bonn"), parent=parent), "I live in Bonn") == []


def test_what_only_the_assistant_said_is_named():
    said = AssistantMessage(text="Bees need sugar in winter, you know.")

    origin = origin_of(job(user("hm"), said), saving("hm", fact="Bees need sugar in winter."))

    assert origin is not None and origin.of_assistant == ("Bees need sugar in winter.",)


def test_a_fact_of_which_nothing_was_said_is_named():
    own = AssistantMessage(text="You own a yacht, I see.")

    invented = origin_of(job(user("I live in Bonn and keep bees"), own), saving("hm", fact="The user owns a yacht."))
    true = origin_of(job(user("I live in Bonn and keep bees")), saving("hm", fact="The user keeps bees."))

    assert invented is not None and invented.unsaid == ("The user owns a yacht.",)
    assert true is not None and true.unsaid == ()


def test_only_built_in_tools_that_remember_are_told_their_origin():
    theirs = ToolDefinition(name="memory_save", server="mine")

    assert origin_of(job(user("hi")), saving("hi", tool="other")) is None
    assert origin_of(job(user("hi")), saving("hi")) is not None
    assert origin_of(job_with(job_id="j", tenant="default", at=NOW, offered=(theirs,)), saving("hi")) is None


def test_saving_in_a_tainted_job_needs_no_approval():
    of = job(user("hi"), taint=TaintSource(kind="tool", name="web_fetch", step=1, call="1"), config=AgentConfig())
    pay = ToolDefinition(name="pay", effect=Effect.ONCE)

    assert cause(of, SAVE) is None
    assert cause(of, pay) == "tainted"


def test_a_call_that_only_finds_says_its_session_alone():
    submitted = SubmitJob(tenant="default", agent="a", input="x", session_id="s1")
    of = job(user("I live in Bonn"), submitted=submitted)
    call = Call(ToolCall(call="1", tool="memory_retrieve", arguments={"search_terms": ["Bonn"]}))

    assert origin_of(of, call) == CallOrigin(session_id="s1")
