"""The commands `wayline embeddings`: which embedding model searches go by."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wayline.standalone.commands.output import AsJson, answer

app = typer.Typer(help="The embedding model that searches go by, and another one in its place.", no_args_is_help=True)

PATH = "/v1/vector-sets"


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show the sets of vectors and how far each is; overlap: what a new one finds of the live one's best ten."""
    from wayline.standalone.terminal.list_views import vector_sets_table

    answer(lambda client: client.get(PATH), as_json=as_json, draw=vector_sets_table)


@app.command()
def build(
    model: Annotated[str | None, typer.Option(help="One that the installation has; else the settings' one.")] = None,
    switch: Annotated[bool, typer.Option("--switch", help="Search it as soon as it is whole.")] = False,
    as_json: AsJson = False,
) -> None:
    """Embed all passages with a model, beside the set that is searched."""
    from wayline.standalone.terminal.list_views import vector_sets_table

    body: dict[str, Any] = {"model": model, "switch": switch}
    answer(lambda client: client.post(f"{PATH}/build", body), as_json=as_json, draw=vector_sets_table)


@app.command()
def switch(as_json: AsJson = False) -> None:
    """Search the set that was built; the one before is kept for a day."""
    _change("switch", as_json=as_json)


@app.command()
def undo(as_json: AsJson = False) -> None:
    """Search the set before again."""
    _change("undo", as_json=as_json)


def _change(verb: str, *, as_json: bool) -> None:
    from wayline.standalone.terminal.list_views import vector_sets_table

    answer(lambda client: client.post(f"{PATH}/{verb}", {}), as_json=as_json, draw=vector_sets_table)
