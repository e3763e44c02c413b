"""The commands `wayline backup` and `wayline restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wayline.standalone.commands.output import AsJson


def backup(
    path: Annotated[
        Path, typer.Argument(help="A directory to make, or a file whose name ends with .tar; with --keep their folder.")
    ],
    *,
    keep: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Write wayline-TIME.tar into the folder, and keep the newest N of them."),
    ] = None,
    without_credentials: Annotated[
        bool, typer.Option("--without-credentials", help="Leave out keys, seeds, passwords and clients of the bus.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write all that is stored to a backup, while everything runs."""
    import asyncio

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.backup.installation_backup import backup as take
        from wayline.standalone.settings import Settings

        asyncio.run(take(Settings(), path, credentials=not without_credentials, keep=keep, as_json=as_json))


def restore(
    path: Annotated[Path, typer.Argument(help="As `wayline backup` wrote it.")],
    *,
    replace: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Delete what is here first; NAME is that of the data directory."),
    ] = None,
    replicas: Annotated[
        int | None, typer.Option(min=1, max=5, help="Copies of each stream; not set: as many as there were.")
    ] = None,
    nothing_after: Annotated[
        bool,
        typer.Option("--nothing-after", help="No service has run since the backup began, so no call has begun since."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the backup and say what would be done.")] = False,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty installation, whose services do not run."""
    import asyncio

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.backup.installation_backup import restore as put_back
        from wayline.standalone.settings import Settings

        asyncio.run(
            put_back(
                Settings(),
                path,
                replace=replace,
                replicas=replicas,
                nothing_after=nothing_after,
                dry_run=dry_run,
                as_json=as_json,
            )
        )
