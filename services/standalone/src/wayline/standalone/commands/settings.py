"""The commands `wayline settings`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wayline.standalone.commands.arguments import fail
from wayline.standalone.commands.output import AsJson, answer

app = typer.Typer(help="What agents do where they do not say otherwise.", no_args_is_help=True)

PATH = "/v1/settings"
LISTS = frozenset({"tools"})
"""Settings with several values, separated by commas."""


@app.command()
def show(as_json: AsJson = False) -> None:
    """Show every setting, and which ones are the defaults."""
    from wayline.standalone.terminal.list_views import settings_table

    answer(lambda client: client.get(PATH), as_json=as_json, draw=settings_table)


@app.command("set")
def set_settings(
    changes: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…", help="For instance max_steps=8 memory=off.")],
    as_json: AsJson = False,
) -> None:
    """Change settings: the next job goes by them, a job that has begun keeps what it began with."""
    from wayline.standalone.terminal.list_views import settings_table

    body = dict(map(_change, changes))
    answer(lambda client: client.patch(PATH, body), as_json=as_json, draw=settings_table)


@app.command()
def reset(
    keys: Annotated[list[str], typer.Argument(metavar="KEY…", help="Settings to take back to their defaults.")],
    as_json: AsJson = False,
) -> None:
    """Take settings back to their defaults."""
    from wayline.standalone.terminal.list_views import settings_table

    body: dict[str, Any] = dict.fromkeys(keys)
    answer(lambda client: client.patch(PATH, body), as_json=as_json, draw=settings_table)


def _change(text: str) -> tuple[str, Any]:
    """Read one change; what its value may be is the gateway's to say."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        fail(f"{text!r} is no KEY=VALUE, such as max_steps=8; `wayline settings show` lists the keys")
    from wayline.contracts.tenant_settings import SettingsChange

    if key not in SettingsChange.model_fields:
        fail(f"there is no setting {key!r}: there are {', '.join(sorted(SettingsChange.model_fields))}")
    return key, [one for one in value.split(",") if one] if key in LISTS else value
