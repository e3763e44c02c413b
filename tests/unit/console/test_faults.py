"""A page that fails: what is logged says where, and holds no value of a variable."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from fastapi import Request
from structlog.testing import capture_logs

from wayline.console.app import _fault
from wayline.console.render.environment import Templates


async def test_a_fault_is_logged_without_the_values_of_variables():
    def page() -> None:
        key = "wl_" + "secret"
        raise ZeroDivisionError(f"{len(key)} cannot be divided")

    app = SimpleNamespace(state=SimpleNamespace(templates=Templates()))
    request: Any = SimpleNamespace(url=SimpleNamespace(path="/jobs"), app=app, cookies={})
    try:
        page()
    except ZeroDivisionError as error:
        with capture_logs() as logged:
            answer = await _fault(cast(Request, request), error)

    assert answer.status_code == 500
    assert "ZeroDivisionError: 9 cannot be divided" in logged[0]["traceback"]
    assert "exc_info" not in logged[0] and "wl_secret" not in str(logged)
