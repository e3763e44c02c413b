"""The commands `wayline tools`."""

from __future__ import annotations

import json
from typing import Annotated, Any
from uuid import uuid4

import typer

from wayline.standalone.commands.arguments import fail, read_json
from wayline.standalone.commands.output import AsJson, answer

RUNS_ON = 3
"""The exit code of `call` while the call runs on; 2 is a wrong command line."""

app = typer.Typer(help="The tools that agents may use.")


@app.callback(invoke_without_command=True)
def list_tools(context: typer.Context, as_json: AsJson = False) -> None:
    """List the tools that agents may use."""
    if context.invoked_subcommand is not None:
        return
    from wayline.standalone.terminal.list_views import tools_table

    answer(lambda client: client.whole("/v1/tools", "tools"), as_json=as_json, draw=tools_table)


@app.command("search")
def search_tools(
    query: Annotated[str, typer.Argument(help="What the tool should do.")],
    agent: Annotated[str | None, typer.Option(help="Only tools that this agent may use.")] = None,
    max_results: Annotated[int, typer.Option(min=1, max=20)] = 10,
    as_json: AsJson = False,
) -> None:
    """Find tools by what they do, as an agent's tool_search does."""
    from wayline.standalone.terminal.list_views import found_tools

    body = {"query": query, "agent": agent, "max_results": max_results}
    answer(lambda client: client.post("/v1/tools/search", body), as_json=as_json, draw=found_tools)


@app.command("call")
def call_tool(
    name: str,
    *,
    arg: Annotated[
        list[str] | None,
        typer.Option("--arg", metavar="NAME=TEXT|NAME:=JSON", help="An argument, as text or as JSON. Can be repeated."),
    ] = None,
    arguments: Annotated[
        str | None, typer.Option(metavar="FILE", help="All of them as JSON; - reads the input.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="Whom the call is for.")] = None,
    key: Annotated[
        str | None,
        typer.Option(help="The same key with the same arguments is the same call; unless given, each is a new one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Call a tool once, without a job. Exit code 1: it failed, or nobody knows; 3: it runs on."""
    from wayline.standalone.terminal.tool_views import called_tool

    given = {} if arguments is None else read_json(arguments)
    if not isinstance(given, dict):
        fail("--arguments is no JSON object, which arguments are by their names")
    named = {**given, **dict(map(_argument, arg or ()))}
    key = key or f"cli-{uuid4().hex}"
    result = answer(
        lambda client: client.call_tool(name, named, key=key, user_id=user),
        as_json=as_json,
        draw=lambda result: called_tool(result, key=key),
    )
    if result["status"] != "success":
        raise typer.Exit(RUNS_ON if result["status"] == "in_progress" else 1)


def _argument(text: str) -> tuple[str, Any]:
    """Return the name and the value of `name=text` or `name:=JSON`; end the command where it is neither."""
    name, equals, value = text.partition("=")
    if not name.strip(":") or not equals:
        fail(f"--arg {text}: write NAME=TEXT, or NAME:=JSON for numbers, lists and objects")
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], json.loads(value)
    except ValueError as error:
        fail(f"--arg {text}: {value} is not JSON: {error}")


@app.command("usage")
def tool_usage(
    agent: Annotated[str | None, typer.Argument(help="Only this agent's jobs.")] = None,
    days: Annotated[int, typer.Option(min=1, max=400, help="How far back jobs are looked at.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show which tools the jobs of agents call, and propose which to load always."""
    from wayline.standalone.terminal.list_views import tool_usage_table

    answer(lambda client: client.get("/v1/tools/usage", agent=agent, days=days), as_json=as_json, draw=tool_usage_table)
