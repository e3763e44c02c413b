"""Tools that come, change and go while a job runs: the model hears of them, and no prompt is ever rewritten."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from mcp.server import MCPServer

from wayline.contracts import events as e
from wayline.contracts.agents import Agent, AgentConfig, PutAgent
from wayline.contracts.chat import NoteMessage
from wayline.contracts.tools import ListTools, ToolList
from wayline.simulator.chat_server import ChatServer, Say
from wayline.testkit import until
from wayline.testkit.mcp_servers import serving

from .conftest import chatting, with_tools

STEPS = 20
LONG = "\n".join(f"page {n}: {'the treasure' if n == 4_321 else 'nothing'}" for n in range(6_000))


def look(place: str = "here") -> str:
    """Look around."""
    return f"nothing at {place}"


def page(number: int) -> str:
    """Read a page."""
    return f"page {number}"


def archive() -> str:
    """Read everything."""
    return LONG


@dataclass
class Box:
    """An MCP server whose tools a test can change."""

    mcp: MCPServer = field(default_factory=lambda: MCPServer("box"))
    url: str = ""

    def offer(self, *tools) -> None:
        """These and no others."""
        for known in ("look", "page", "archive"):
            if known in self.mcp._tool_manager._tools:
                self.mcp.remove_tool(known)
        for tool in tools:
            self.mcp.add_tool(tool)

    def settings(self) -> dict[str, object]:
        return {"name": "box", "url": self.url, "effects": {"look": "read", "page": "read", "archive": "read"}}


@asynccontextmanager
async def box(*tools) -> AsyncIterator[Box]:
    made = Box()
    made.offer(*tools)
    async with serving(made.mcp) as made.url:
        yield made


def count_answers(body) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


async def listing(platform, *names: str) -> None:
    """Wait until the registry lists exactly these tools of the box."""

    async def listed() -> bool:
        found = await platform.bus.ask(ListTools(tenant="default", patterns=("box__*",)), ToolList)
        return [tool.name for tool in found.tools] == sorted(f"box__{name}" for name in names)

    await until(listed, why=f"the registry lists {names}")


def fresh(chat: ChatServer, **more):
    """An executor that never uses a listing twice."""
    return chatting(chat).model_copy(update={"tools_fresh_s": 0.0, **more})


def flapping(step: int, held: dict[int, asyncio.Event]) -> Say:
    """The n-th answer of the twenty-step job."""
    calls = {
        3: (("box__look", {"place": "the desk"}), ("get_current_time", {})),
        5: (("use_tool", {"name": "box__page", "arguments": {"number": 7}}),),
        9: (("box__look", {"place": "the shelf"}),),
        13: (("use_tool", {"name": "box__page", "arguments": {"number": "many"}}),),
        15: (("use_tool", {"name": "box__pge", "arguments": {}}),),
    }
    # Other arguments each time: identical calls with identical results would be taken for a loop.
    other = (("get_current_time", {"timezone": f"Etc/GMT+{step % 12}"}),)
    return Say(text=f"step {step}", tools=calls.get(step, other), hold=held.get(step))


async def test_twenty_steps_with_a_flapping_server_never_rewrite_a_prompt(platform):
    held = {step: asyncio.Event() for step in (4, 8, 12)}

    def script(body) -> Say:
        step = count_answers(body) + 1
        return flapping(step, held) if step < STEPS else Say(text="done")

    def notes(job) -> list[NoteMessage]:
        # Not by attempt: what was said once is not said again.
        told = {2: "Ann is the customer.", 7: "Bob joined.", 11: "Bob joined.", 16: "Bob left."}
        return [NoteMessage(label="CONTEXT", text=told[n]) for n in told if n == job.model.step + 1]

    async with box(look) as server, ChatServer(script) as chat:
        registry = with_tools(server.settings(), probe_every_s=0.05)
        await platform.start(
            "router",
            "executor",
            "tool_registry",
            executor=fresh(chat),
            tool_registry=registry,
            build={"executor": {"notes": notes}},
        )
        await listing(platform, "look")
        await platform.submit("j1", model="chat/m", max_steps=STEPS + 1)

        for step, tools in ((4, (look, page)), (8, (page,)), (12, (look, page))):
            await until(lambda step=step: len(chat.calls) >= step, why=f"step {step} is asked for")
            server.offer(*tools)
            await listing(platform, *(tool.__name__ for tool in tools))
            held[step].set()
        ended = await platform.wait_for("j1", within=60)

    assert (ended.status, ended.answer, ended.steps) == ("completed", "done", STEPS)
    bodies = [body for _, body in chat.calls]
    for before, after in pairwise(bodies):
        assert after["tools"] == before["tools"]
        assert after["messages"][: len(before["messages"])] == before["messages"]

    events = await platform.events("j1")
    asked = [event for event in events if isinstance(event, e.ModelRequested)]
    assert [event.cache_break for event in asked] == [None] * STEPS
    assert [event.step for event in asked if event.tools is not None] == [1]
    told = [(event.note.label, event.note.text) for event in events if isinstance(event, e.ContextInjected)]
    assert [label for label, _ in told] == ["CONTEXT", "TOOL GUIDANCE", "CONTEXT", "CONTEXT"]
    assert told[1][1].startswith("box__page (new, call it through use_tool): Read a page.")

    done = {event.step: event for event in events if isinstance(event, e.ToolCompleted) and event.call == "1"}
    assert (done[3].content, done[5].tool, done[5].content) == ("nothing at the desk", "box__page", "page 7")
    assert done[9].error is not None and done[9].error.code == "unknown_tool"
    assert done[13].error is not None and "number" in done[13].error.message
    assert done[15].error is not None and done[15].error.code == "unknown_tool"


async def test_a_long_result_is_shortened_and_recalled_from_the_log(platform):
    def script(body) -> Say:
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        if not results:
            return Say(tools=(("box__archive", {}),))
        if len(results) == 1:
            return Say(tools=(("recall_details", {"step": 1, "call": "1", "query": "treasure"}),))
        return Say(text=results[1])

    async with box(archive) as server, ChatServer(script) as chat:
        await platform.start(
            "router",
            "executor",
            "tool_registry",
            executor=fresh(chat, result_tokens_max=500),
            tool_registry=with_tools(server.settings()),
        )
        await listing(platform, "archive")
        await platform.submit("j1", model="chat/m")
        ended = await platform.wait_for("j1")

    shown = chat.calls[-1][1]["messages"][3]["content"]
    assert len(shown) <= 2_000 and "treasure" not in shown
    assert 'recall_details {"step": 1, "call": "1"} reads the rest' in shown
    assert "page 4321: the treasure" in (ended.answer or "")
    whole, recalled = [event for event in await platform.events("j1") if isinstance(event, e.ToolCompleted)]
    assert (whole.full, recalled.full, recalled.tool) == (LONG, None, "recall_details")


async def test_a_session_recalls_only_what_its_own_jobs_read(platform):
    treasure = {"job": "j1", "step": 1, "call": "1", "query": "treasure"}

    def script(body) -> Say:
        *_, last = body["messages"]
        if last["role"] == "tool":
            return Say(text=last["content"])
        return Say(tools=((("box__archive", {}) if "read" in str(last["content"]) else ("recall_details", treasure)),))

    async with box(archive) as server, ChatServer(script) as chat:
        await platform.start(
            "router",
            "executor",
            "tool_registry",
            executor=fresh(chat, result_tokens_max=500),
            tool_registry=with_tools(server.settings()),
        )
        await listing(platform, "archive")
        for job_id, session, words in (("j1", "ours", "read"), ("j2", "ours", "recall"), ("j3", "other", "recall")):
            body = {"agent": "assistant", "input": words, "job_id": job_id, "session_id": session}
            await platform.publish({**body, "options": {"model": "chat/m"}})
            await platform.wait_for(job_id)

    shown, ours, other = [(await platform.wait_for(job_id)).answer for job_id in ("j1", "j2", "j3")]
    assert 'recall_details {"job": "j1", "step": 1, "call": "1"} reads the rest' in shown
    assert "page 4321: the treasure" in ours
    assert "treasure" not in other and "no result with that step and call" in other


async def test_a_tool_outside_the_agents_patterns_cannot_be_used_indirectly(platform):
    def script(body) -> Say:
        if count_answers(body):
            return Say(text=body["messages"][-1]["content"])
        return Say(tools=(("use_tool", {"name": "get_current_time", "arguments": {}}),))

    async with ChatServer(script) as chat:
        await platform.start("router", "executor", "tool_registry", executor=fresh(chat))
        narrow = PutAgent(tenant="default", name="narrow", config=AgentConfig(tools=("search_*",)))
        await platform.bus.ask(narrow, Agent)
        await platform.submit("j1", agent="narrow", model="chat/m")
        ended = await platform.wait_for("j1")

    assert (ended.answer or "").startswith("there is no tool 'get_current_time' here")
