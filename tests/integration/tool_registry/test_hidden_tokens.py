"""Tokens of a login that a server repeats are hidden in what a model reads."""

from __future__ import annotations

from mcp.server.mcpserver.exceptions import ToolError

from wayline.testkit.mcp_servers import serving

from .oauth_server import Protected
from .test_logging_in import SETTINGS, log_in, pay, save


class Leaky(Protected):
    """Repeats its newest tokens in the errors of its tool."""

    def pay(self, amount: int) -> str:
        """Pay."""
        raise ToolError(f"{self.given[-2]} of {self.given[-1]} may not pay {amount}")


async def test_tokens_in_a_tools_error_are_hidden_also_after_renewal(platform):
    await platform.registry(platform.effects.settings(), **SETTINGS)
    bank = Leaky()
    async with serving(bank) as url:
        await save(platform, url)
        await log_in(platform, bank)
        replies = [await pay(platform)]
        bank.valid = set()
        replies.append(await pay(platform, "j2"))

    assert bank.refreshed == 1
    assert ["*** of *** may not pay 1" in reply.error.message for reply in replies] == [True, True]
