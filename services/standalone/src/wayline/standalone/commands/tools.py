"""The commands `wayline tools`."""

from __future__ import annotations

from typing import Annotated

import typer

from wayline.standalone.commands.output import AsJson, answer

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


@app.command("usage")
def tool_usage(
    agent: Annotated[str | None, typer.Argument(help="Only this agent's jobs.")] = None,
    days: Annotated[int, typer.Option(min=1, max=400, help="How far back jobs are looked at.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show which tools the jobs of agents call, and propose which to load always."""
    from wayline.standalone.terminal.list_views import tool_usage_table

    answer(lambda client: client.get("/v1/tools/usage", agent=agent, days=days), as_json=as_json, draw=tool_usage_table)
