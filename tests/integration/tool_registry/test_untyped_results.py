"""Results whose server leaves out their type: the call took place, and is reported so."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer

from wayline.contracts.tools import Effect
from wayline.testkit.mcp_servers import serving

TYPED = b'"resultType":"complete"'


class Untyped:
    """A server of the newest protocol that says of no call's result what kind it is."""

    def __init__(self) -> None:
        self.paid = self.stripped = 0
        self.mcp = MCPServer("bank")
        self.mcp.add_tool(self.pay)

    def pay(self) -> str:
        """Pay."""
        self.paid += 1
        return "paid for sure"

    def streamable_http_app(self) -> Any:
        inner = self.mcp.streamable_http_app()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            async def strip(message: Any) -> None:
                body = message.get("body", b"")
                if b"paid for sure" in body and TYPED in body:
                    self.stripped += 1
                    # Of the same length, and an unknown field is ignored.
                    message = {**message, "body": body.replace(TYPED, b'"resultTypo":"complete"')}
                await send(message)

            await inner(scope, receive, strip)

        return app


async def test_a_result_without_a_type_is_complete(platform):
    bank = Untyped()
    async with serving(bank) as url:
        await platform.registry({"name": "bank", "url": url, "effects": {"pay": Effect.ONCE}})

        reply = await platform.call(platform.ask("bank__pay"))

    assert (reply.status, reply.content) == ("success", "paid for sure")
    assert (bank.paid, bank.stripped) == (1, 1)
