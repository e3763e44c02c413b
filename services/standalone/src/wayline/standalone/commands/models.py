"""The command `wayline models`."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from wayline.standalone.commands.arguments import fail, read_json
from wayline.standalone.commands.output import AsJson, answer

app = typer.Typer(help="What jobs can be sent to, and what it costs.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="provider/model, as `wayline models list` shows it.")]


@app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List every model by provider and tier; an unknown price is shown as unknown."""
    from wayline.standalone.terminal.model_views import models_table

    answer(lambda client: client.whole("/v1/models", "models"), as_json=as_json, draw=models_table)


@app.command("show")
def show_model(name: Name, as_json: AsJson = False) -> None:
    """Show one model: its abilities, its prices, and their source."""
    from wayline.standalone.terminal.model_views import model_details

    path = _path(name)
    answer(lambda client: client.get(path), as_json=as_json, draw=model_details)


@app.command("add")
def add_model(
    file: Annotated[str, typer.Argument(help="Its card as JSON; - reads the input. See docs/models.md.")],
    as_json: AsJson = False,
) -> None:
    """Add a model of your own, or override a bundled one."""
    card = read_json(file)
    try:
        path = _path(f"{card['provider']}/{card['model']}")
    except (KeyError, TypeError):
        fail(f"{file} is not a card: it needs `provider` and `model`")
    from wayline.standalone.terminal.model_views import model_details

    answer(lambda client: client.put(path, card), as_json=as_json, draw=model_details)


@app.command("remove")
def remove_model(name: Name, as_json: AsJson = False) -> None:
    """Remove a model card of your own; a bundled model of that name is visible again."""
    path = _path(name)
    answer(
        lambda client: client.delete(path),
        as_json=as_json,
        draw=lambda _: f"{name} is removed",
    )


def _path(name: str) -> str:
    if not all(name.partition("/")):
        fail(f"{name!r} is not of the form provider/model, as `wayline models list` shows it")
    return f"/v1/models/{quote(name, safe='/')}"
