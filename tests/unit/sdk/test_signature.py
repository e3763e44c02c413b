"""What a model may give to a tool's function, and what only the bus gives it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Optional

import pytest
from pydantic import BaseModel

from wayline.sdk import Call, Tools
from wayline.sdk.daemon_threads import DaemonThreads
from wayline.sdk.functions import ToolFunction

CALL = Call(key="t/j/1/1", tenant="t", job_id="j", step=1, user_id=None, deadline=datetime.now(UTC))
FORGED = {"key": "chosen", "tenant": "other", "job_id": "j", "step": 1, "user_id": "root", "deadline": "2030-01-01"}


def tool(function: Callable[..., Any]) -> ToolFunction:
    return ToolFunction.of(function, name="pay", outcome=None)


async def plain(n: int, call: Call) -> str:
    return call.key


async def with_none(n: int, call: Call | None = None) -> str:
    return call.key if call else "none"


async def optional(n: int, call: Optional[Call] = None) -> str:  # noqa: UP045
    return call.key if call else "none"


async def annotated(n: int, call: Annotated[Call, "the call"]) -> str:
    return call.key


async def annotated_union(n: int, call: Annotated[Call | None, "the call"] = None) -> str:
    return call.key if call else "none"


@pytest.mark.parametrize("function", [plain, with_none, optional, annotated, annotated_union])
async def test_a_model_can_neither_see_nor_give_the_call(function: Callable[..., Any]):
    pay = tool(function)

    given = await pay.run({"n": 2}, CALL, DaemonThreads())
    forged = await pay.run({"n": 2, "call": FORGED}, CALL, DaemonThreads())

    assert set(pay.offered.input_schema["properties"]) == {"n"}
    assert given.text == CALL.key
    assert forged.error is not None and "call" in forged.error


class Order(BaseModel):
    number: str
    call: Call


async def listed(calls: list[Call]) -> None: ...


async def by_name(calls: dict[str, Call | None]) -> None: ...


async def within(order: Order) -> None: ...


async def hidden(_n: int) -> None: ...


async def configured(model_config: str) -> None: ...


async def shadowing(model_fields: str) -> None: ...


async def unknown_type(n: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "function", [listed, by_name, within, hidden, configured, shadowing, unknown_type], ids=lambda one: one.__name__
)
def test_a_parameter_that_no_model_could_give_is_refused(function: Callable[..., Any]):
    with pytest.raises(TypeError, match=f"the tool {function.__name__}: "):
        Tools("orders").tool()(function)


async def test_a_parameter_may_be_called_like_a_method_of_a_model():
    async def copy(json: str, copy: int = 1) -> str:
        return f"{json} {copy}"

    result = await tool(copy).run({"json": "a"}, CALL, DaemonThreads())

    assert result.text == "a 1"
