"""The tool-registry's MCP client, as the official suite starts it: `client.py URL`.

What a scenario needs besides connecting is told by its context in the environment; all tools are called the way
that the registry calls them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, urlsplit

from wayline.contracts.server_config import ServerOAuth, ServerSettings
from wayline.contracts.tools import InputAnswer
from wayline.tool_registry.calls.asked_input import is_question
from wayline.tool_registry.calls.tool_servers import NEEDS_LOGIN, ToolRequest
from wayline.tool_registry.connection.mcp_library import load
from wayline.tool_registry.connection.server_transport import http_client
from wayline.tool_registry.definitions.arguments import Arguments
from wayline.tool_registry.definitions.tool_catalogue import Tool
from wayline.tool_registry.errors import LoginRefused, NeedsLogin
from wayline.tool_registry.logins.authorization_table import AuthorizationTable, Secrets
from wayline.tool_registry.logins.token_owner import TokenOwner
from wayline.tool_registry.logins.token_renewals import TokenRenewals
from wayline.tool_registry.servers.mcp_server import McpServer
from wayline.tool_registry.settings import Settings

if TYPE_CHECKING:
    from httpx2 import AsyncClient

CALLBACK = "http://127.0.0.1:8080/v1/mcp/oauth/callback"
READY_S = 25.0
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""What the suite takes for the document of a client."""
LOGINS_MAX = 3
"""A person who is asked to log in again and again gives up."""
CALL_S = 10.0
VALUES: dict[str, Any] = {"string": "a", "number": 1, "integer": 1, "boolean": True, "object": {}, "array": []}
ECHO = "json_schema_echo"


SUITE = TokenOwner("suite", "suite")


class Tokens:
    """What the registry's table and its renewals do, for one server and in memory."""

    def __init__(self) -> None:
        self.held: Secrets | None = None
        self.wanted_scope: str | None = None

    async def find(self, owner: TokenOwner) -> Secrets | None:
        """Return the tokens of the server."""
        return self.held

    async def change(self, owner: TokenOwner, change: Callable[[Secrets], Secrets | None]) -> Secrets | None:
        """Change the tokens, or give them up."""
        self.held = None if self.held is None else change(self.held)
        self.wanted_scope = None if self.held is None else self.held.get("wanted_scope")
        return self.held

    async def renew(self, owner: TokenOwner, refresh: Callable[[Secrets], Awaitable[Secrets | None]]) -> Secrets | None:
        """Renew the tokens."""
        self.held = None if self.held is None else await refresh(self.held)
        return self.held


async def log_in(url: str, tokens: Tokens) -> None:
    """Log in as a person does, whom the suite's authorization server sends back at once."""
    from wayline.tool_registry.logins import oauth_flow

    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    known = {name: context[name] for name in ("client_id", "client_secret", "issuer") if name in context}
    async with http_client(None, connections_max=4, answer_within_s=CALL_S) as http:
        asked = oauth_flow.LoginRequest(
            tenant=SUITE.tenant,
            url=url,
            oauth=ServerOAuth.model_validate(known if "issuer" in known else {}),
            redirect_uri=CALLBACK,
            client_metadata_url=DOCUMENT,
            wanted_scope=tokens.wanted_scope,
        )
        page, state, login = await oauth_flow.begin(http, asked)
        answer = await http.get(page)
        back = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
        if back["state"] != state:
            raise SystemExit("the suite's authorization server answered with another state")
        tokens.held = await oauth_flow.finish(http, login, code=back["code"], iss=back.get("iss"))


def connection(url: str, tokens: Tokens) -> McpServer:
    """Return the scenario's server, with a login where there are tokens."""
    from wayline.tool_registry.logins.server_auth import ServerAuth

    def authorize(add_secret: Callable[[str], None]) -> ServerAuth:
        def client() -> AsyncClient:
            return http_client(None, connections_max=4, answer_within_s=CALL_S)

        table, renewals = cast("AuthorizationTable", tokens), cast("TokenRenewals", tokens)
        return ServerAuth(table, renewals, SUITE, url, http=client, add_secret=add_secret)

    server = ServerSettings(name="suite", url=url)
    return McpServer(server, Settings(), Arguments(), authorize=authorize if tokens.held else None)


async def main(url: str) -> None:
    """Connect to the scenario's server, and call its tools."""
    await load()
    tokens = Tokens()
    if not os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/"):
        await use(url, tokens)
        return
    for _ in range(LOGINS_MAX):
        await log_in(url, tokens)
        try:
            await use(url, tokens)
        except (NeedsLogin, LoginRefused) as error:
            print(error, file=sys.stderr)
        else:
            return
    raise SystemExit("the suite's server wants yet another login")


async def use(url: str, tokens: Tokens) -> None:
    """Connect with a login where there is one, and call the tools. Raises NeedsLogin or LoginRefused."""
    server = connection(url, tokens)
    server.start()
    try:
        await asyncio.wait_for(server.tried.wait(), READY_S)
        if server.problem is not None and NEEDS_LOGIN in server.problem:
            raise NeedsLogin(server.problem)
        if server.problem is not None:
            raise SystemExit(f"the suite's server cannot be used: {server.problem}")
        tools = {tool.offered_as: tool for tool in server.tools.values()}
        for name, arguments in calls(tools):
            await call(server, name, arguments)
    finally:
        await server.stop()


def calls(tools: dict[str, Tool]) -> list[tuple[str, dict[str, Any]]]:
    """Return what is called: what the scenario's context says, else every tool with plain arguments."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if "toolCalls" in context:
        return [(one["name"], one["arguments"]) for one in context["toolCalls"]]
    if ECHO in tools:
        [other] = tools.keys() - {ECHO}
        return [(ECHO, {"schema": tools[other].definition.input_schema})]
    return [(name, plain(tool.definition.input_schema)) for name, tool in tools.items()]


def plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a value for each property that a schema requires."""
    properties = schema.get("properties", {})
    return {name: VALUES[properties.get(name, {}).get("type", "string")] for name in schema.get("required", [])}


async def call(server: McpServer, name: str, arguments: dict[str, Any]) -> None:
    """Call a tool, and answer its server's question as a person would, with yes."""
    answer: InputAnswer | None = None
    while True:
        request = ToolRequest(name, arguments, {}, CALL_S, effect=False, answer=answer)
        result = await server.call(request)
        if not is_question(result):
            return
        answers = {key: {"confirmed": True} for key in result.input_requests or {}}
        answer = InputAnswer(answers=answers, state=result.request_state)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
