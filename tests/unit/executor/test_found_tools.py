"""Found definitions are counted wherever a prompt is measured, and known to the next agent of a session."""

from __future__ import annotations

import orjson

from wayline.contracts import events as e
from wayline.contracts.agents import AgentConfig
from wayline.contracts.chat import AssistantMessage, LoadedTools, ToolCall, ToolMessage
from wayline.contracts.jobs import JobOptions
from wayline.contracts.loaded_tools import LoadingMessage
from wayline.contracts.tools import TOOL_SEARCH, USE_TOOL, ToolDefinition
from wayline.executor.decide import compaction
from wayline.executor.decide.session_history import continues
from wayline.executor.decide.worst_case import most_tokens
from wayline.executor.prompt.assemble import PromptHashes, assemble
from wayline.executor.prompt.model_request import model_request
from wayline.executor.prompt.notes import found, reminder
from wayline.journal import Call, Job, evolve
from wayline.llm import ModelRequest
from wayline.llm.tokens import BYTES_PER_TOKEN, WIRE_TOKENS_MAX, estimate_definitions, most
from wayline.testkit.jobs import job_with

from .logs import AT, TRACE, Log, card
from .talk import Talk, tool

LONG = {"type": "object", "description": "how to fill it in " * 2_000}
RATE, PAY = (ToolDefinition(name=name, input_schema=LONG) for name in ("bank__rate", "bank__pay"))
RATE_NOW = RATE.model_copy(update={"description": "By the hour."})
SEARCH, USE, CLOCK = (ToolDefinition(name=name) for name in (TOOL_SEARCH, USE_TOOL, "get_current_time"))
REFERS = card("acme/primary", tool_references=True, context_window=100_000)
LOADED = LoadedTools(names=("bank__rate", "bank__pay"))


def event(kind: type[e.Event], **fields) -> e.Event:
    return kind(job_id="j", seq=9, at=AT, trace=TRACE, **fields)


def searched(model=REFERS) -> Log:
    """A job's log whose search has found both tools."""
    log = Log(cards=(model,)).ask(tools=(SEARCH, USE)).answer("", TOOL_SEARCH, stop="tools")
    log.say(e.ToolsDiscovered, tools=(RATE, PAY), call="1/1")
    done = {"step": 1, "call": "1", "tool": TOOL_SEARCH, "status": "success", "content": "both"}
    return log.say(e.ToolCompleted, **done, loaded=LOADED)


def request(job: Job) -> ModelRequest:
    return model_request(job, step=2, attempt=1, tools=job.tools.offered or ())


def test_found_definitions_count_in_the_segment_and_the_worst_case():
    asked = request(searched().job)
    segments = PromptHashes().segments(asked)
    text = PromptHashes().segments(assemble(searched().job))

    beyond = segments[-1].tokens - text[-1].tokens
    assert beyond == estimate_definitions([RATE, PAY]) - 1
    assert (segments[-1].hash, segments[-1].count) == (text[-1].hash, text[-1].count)
    pieces = sum(part.count for part in segments) + len(LOADED.names)
    assert most_tokens(asked, segments) == most(sum(part.tokens for part in segments), pieces=pieces)


def test_a_model_without_references_is_measured_by_the_text():
    plain = card("acme/spare", context_window=100_000)
    asked = request(searched().job)
    segments = PromptHashes().segments(asked)

    on_text = most_tokens(asked, segments, on=plain)

    assert most_tokens(asked, segments) - on_text == most(estimate_definitions([RATE, PAY]) - 1, pieces=2)
    text = request(searched(card("acme/primary", context_window=100_000)).job)
    there = most_tokens(text, PromptHashes().segments(text), on=REFERS)
    assert abs(there - most_tokens(asked, segments)) <= WIRE_TOKENS_MAX


def test_found_definitions_are_measured_when_a_window_is_planned():
    message = searched().job.conversation.messages[-1]

    beyond = compaction._size(message, REFERS) - compaction._size(message, None)

    assert beyond == (estimate_definitions([RATE, PAY]) - 1) * BYTES_PER_TOKEN
    assert compaction._size(message, card("acme/spare")) == compaction._size(message, None)


def test_a_result_has_the_definitions_of_its_own_log():
    message = searched().job.conversation.messages[-1]
    plain = ToolMessage(**{name: getattr(message, name) for name in ToolMessage.model_fields})

    assert isinstance(message, LoadingMessage) and message.definitions == (RATE, PAY)
    assert message.model_dump_json() == plain.model_dump_json()
    assert orjson.loads(message.model_dump_json())["loaded"]["names"] == ["bank__rate", "bank__pay"]


def test_a_result_whose_tools_nobody_knows_is_plain():
    wanted = ToolCall(call="1", tool=TOOL_SEARCH)
    waiting = job_with(calls=(Call(wanted=wanted),), messages=(AssistantMessage(tool_calls=(wanted,)),))
    done = {"step": 1, "call": "1", "tool": TOOL_SEARCH, "status": "success", "content": "both"}

    message = evolve(waiting, event(e.ToolCompleted, **done, loaded=LOADED)).conversation.messages[-1]

    assert type(message) is ToolMessage


def test_another_agent_goes_on_with_the_found_tools_it_may_use():
    log = Log(config=AgentConfig(tools=("bank__*",), tools_off=("bank__pay",)))

    assert continues(log.job, searched().job, ())["discovered"] == (RATE,)
    assert continues(searched().job, searched().job, ())["discovered"] == (RATE, PAY)


def test_found_tools_are_known_before_another_agents_first_call():
    continued = event(e.SessionContinued, agent_changed=True, discovered=(RATE, PAY))
    job = evolve(Log().job, continued)
    first = e.ModelRequested.model_validate(
        {**Log().ask(tools=(RATE_NOW, SEARCH, USE)).events[-1].model_dump(), "deferred_tokens": 7}
    )

    later = evolve(job, first)

    assert (job.tools.offered, job.tools.definition("bank__pay")) == (None, PAY)
    assert later.tools.discovered == (PAY,)
    assert later.tools.definition("bank__rate") == RATE_NOW
    assert later.tools.deferred_tokens == 7


def test_a_known_tools_change_is_news_before_the_first_call():
    talk = Talk(listed=(tool("a", 2), tool("b"), *(tool(f"t{n:02}") for n in range(20))))
    talk.note(e.SessionContinued, agent_changed=True, discovered=(tool("a"), tool("b"), tool("gone")))

    talk.ask()

    told = [one for one in talk.events if isinstance(one, e.ToolsDiscovered | e.ContextInjected)]
    assert [one.type for one in told] == ["tools.discovered", "context.injected"]
    assert isinstance(told[0], e.ToolsDiscovered) and told[0].tools == (tool("a", 2),)
    assert talk.job.tools.definition("a") == tool("a", 2)


def test_a_tool_of_the_new_prompts_is_not_announced():
    talk = Talk(listed=(tool("a", 2), tool("b")))
    talk.note(e.SessionContinued, agent_changed=True, discovered=(tool("a"), tool("gone")))

    talk.ask()

    assert not [one for one in talk.events if isinstance(one, e.ToolsDiscovered | e.ContextInjected)]
    assert talk.job.tools.definition("a") == tool("a", 2)


def test_a_required_tool_that_is_not_known_is_news():
    job = job_with(Log(options=JobOptions(required_tools=("bank__pay",))).job, offered=(SEARCH, USE))

    assert found(job, [RATE, PAY]) == (PAY,)
    assert found(job_with(job, discovered=(PAY,)), [RATE, PAY]) == ()


def test_nothing_is_said_to_go_through_a_missing_use_tool():
    assert reminder(job_with(Log().job, discovered=(RATE,))) is None
    assert reminder(job_with(Log().job, discovered=(RATE,), offered=(SEARCH, USE))) is not None
