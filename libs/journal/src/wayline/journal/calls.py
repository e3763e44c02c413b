"""The tool calls of a job: what was asked for, decided and answered, and the programs that make calls."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from wayline.contracts import events as e
from wayline.contracts.chat import ToolCall
from wayline.contracts.jobs import TaintSource
from wayline.contracts.tools import NOT_ITSELF, TOOL_SEARCH, USE_TOOL, Effect, ToolDefinition, tool_named
from wayline.journal.repeats import Repeated, repeated


class Approval(NamedTuple):
    """A person's approval of one call of the current step, asked for and perhaps decided."""

    asked: e.ApprovalRequested
    decided: e.ApprovalDecided | None = None
    spent: bool = False
    """The call was made: another one needs another approval."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Return what the call is made with: as the decider edited it, else as it was asked for."""
        edited = self.decided.arguments if self.decided and self.asked.input is None else None
        return self.asked.arguments if edited is None else edited


class Call(NamedTuple):
    """A tool call of the current step and how far it is."""

    wanted: ToolCall
    key: str | None = None
    """Set once the intent is in the log."""
    span: e.SpanRef | None = None
    """The span of all its repeats; set with the key."""
    effect: Effect | None = None
    decision_id: str | None = None
    """Set when the outcome is unknown and a human was asked."""
    expires_at: datetime | None = None
    """When a human must have decided; of a tool of the job's caller, when it must have returned."""
    decision: e.DecisionMade | None = None
    unloaded: bool = False
    """Whether the model did not know the tool when it called it: such a call is not made, but loads the tool."""
    child_id: str | None = None
    """The job that a call of `run_agent` has become."""
    rewrite_asked: bool = False
    """Whether a model was asked for another query, or could not be: nobody asks twice."""
    rewritten: e.QueryRewritten | None = None
    """What came of that."""
    done: e.ToolCompleted | None = None
    retried: int = 0
    """How often a human had it made again because nobody knew what it had done."""

    @property
    def meant(self) -> ToolCall:
        """Return the call of the tool itself, also where the model went through `use_tool`.

        What cannot be read as one stays what it is, and is answered with what is wrong with it.
        """
        wanted = self.wanted
        if wanted.tool not in NOT_ITSELF:
            return wanted
        if wanted.tool != USE_TOOL:
            return wanted.model_copy(update={"tool": tool_named(wanted.tool)})
        name, arguments = wanted.arguments.get("name"), wanted.arguments.get("arguments", {})
        if isinstance(arguments, str):
            # Some models write the inner object as text.
            with suppress(ValueError):
                arguments = orjson.loads(arguments)
        if not isinstance(name, str) or not name or not isinstance(arguments, dict):
            return wanted
        return wanted.model_copy(update={"tool": tool_named(name), "arguments": arguments})

    @property
    def retries(self) -> int:
        """Return how often it will have been made again with its next intent."""
        return self.retried + (self.decision is not None and self.decision.outcome == "retry")

    @property
    def undecided(self) -> bool:
        """Return whether a human has been asked and has not decided yet."""
        return self.decision_id is not None and self.decision is None and self.done is None


class RecordedResult(NamedTuple):
    """A result that an assembler reads, whole, whatever became of the messages that showed it."""

    tool: str
    content: str
    """Why it failed, where it did."""
    failed: bool = False


class Tools(NamedTuple):
    """The tools that the model knows, and the calls of the step under way."""

    offered: tuple[ToolDefinition, ...] | None = None
    """The tools of every prompt, as they were at the first call."""
    absent: tuple[str, ...] = ()
    """Servers of which no tool was listed at the first call, although the agent may use some."""
    client: tuple[str, ...] = ()
    """The tools that the job's caller runs itself."""
    discovered: tuple[ToolDefinition, ...] = ()
    """Tools that the model was told of later, oldest first; a name may come again with another definition."""
    deferred_tokens: int = 0
    """Estimated tokens of the definitions that `offered` leaves to be found."""
    calls: tuple[Call, ...] = ()
    approvals: tuple[Approval, ...] = ()
    """Every approval that was asked for in this step, oldest first; of one call the newest counts."""
    taint: TaintSource | None = None
    """Where the job first read the words of strangers."""
    misread: int = 0
    """Steps in a row of which every tool call was refused for its name or its arguments."""
    repeats: tuple[Repeated, ...] = ()
    """Calls by name and arguments, and how often each brought the same result."""
    ran: tuple[str, ...] = ()
    """The required tools that ran."""
    shortened: tuple[str, ...] = ()
    """Calls of the last step whose results are shown in a shorter form, and for which no summary was asked yet."""
    unranked: tuple[e.ToolCompleted, ...] = ()
    """Searches of the last step whose passages a model is to rank, until it is known what came of that."""
    rank_asked: tuple[str, ...] = ()
    """Those of them, as `step/call`, for which a model was asked: nobody asks twice."""
    recorded: tuple[RecordedResult, ...] = ()
    """What tools for planning returned, oldest first."""
    sent_back: bool = False
    """Whether an answer was sent back because required tools had not run: once."""

    @property
    def tainted_by(self) -> str | None:
        """Return the first untrusted tool or document whose words the job has read; None: there is none."""
        return None if self.taint is None else self.taint.name

    def is_client(self, call: Call) -> bool:
        """Return whether a call is one of a tool that the job's caller runs itself."""
        return bool(self.client) and call.meant.tool in self.client

    @property
    def given_out(self) -> tuple[Call, ...]:
        """Return the calls of the step whose results the job's caller has to give."""
        if not self.client:
            return ()
        return tuple(call for call in self.calls if call.key and call.done is None and self.is_client(call))

    def repeated(self, call: ToolCall) -> Repeated | None:
        """Return how often a call was made already with one result."""
        return repeated(self.repeats, call)

    def approval(self, number: str) -> Approval | None:
        """Return the newest approval that was asked for a call of this step."""
        if not self.approvals:
            return None
        return next((one for one in reversed(self.approvals) if one.asked.call == number), None)

    @property
    def pending(self) -> tuple[e.ApprovalRequested, ...]:
        """Return the approvals that nobody has decided, of calls that still wait for them."""
        return tuple(one.asked for one in self.approvals if one.decided is None and not one.spent)

    def decision_schema(self, asked: e.ApprovalRequested) -> dict[str, Any]:
        """Return what an approver's arguments must fit: the tool's schema, or that of the answer its server wants."""
        if asked.input is not None:
            return asked.input.input_schema
        definition = self.definition(asked.tool)
        return definition.input_schema if definition else {}

    @property
    def searched(self) -> bool:
        """Return whether the model finds tools with `tool_search`."""
        return any(tool.name == TOOL_SEARCH for tool in self.offered or ())

    def definition(self, name: str) -> ToolDefinition | None:
        """Return the newest definition of a tool that the model knows."""
        for tool in reversed(self.discovered):
            if tool.name == name:
                return tool
        for tool in self.offered or ():
            if tool.name == name:
                return tool
        return None


class Code(NamedTuple):
    """The program of the step under way, and its calls."""

    program: str | None = None
    """The call of `run_code`; None: no program runs."""
    began_at: datetime | None = None
    """When it was begun for the first time: its clocks stand there."""
    program_calls: tuple[Call, ...] = ()
    """Its calls, in the order in which their intents were written, or the questions whether they may be made."""
    outcomes: tuple[str, ...] = ()
    """The names of those with an outcome, in the order in which they ended."""
    earlier: int = 0
    """The highest number of a call of the programs before it in the same step."""
    suspended: e.CodeSuspended | None = None
    """Where it last waited."""

    def named(self, number: int) -> str:
        """Return the name of the program's call with this number, from 1."""
        return f"c{self.earlier + number}"

    def number(self, name: str) -> int:
        """Return the number of a call of the program."""
        return int(name.removeprefix("c")) - self.earlier

    def call(self, name: str) -> Call | None:
        """Return the call of this name that is in the log."""
        if not self.program_calls:
            return None
        return next((call for call in self.program_calls if call.wanted.call == name), None)
