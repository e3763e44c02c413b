"""The `wayline` command and its subcommands; nothing here is slow to import."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from wayline.standalone.commands import (
    access,
    administration,
    audit,
    backups,
    bulk,
    bus,
    console_links,
    draining,
    embeddings,
    feedback,
    forget,
    jobs,
    knowledge,
    mcp,
    memory,
    models,
    money,
    replaying,
    rotate,
    routing,
    run_controls,
    schedules,
    sessions,
    settings,
    tools,
    webhooks,
)
from wayline.standalone.commands.completion import PROGRAM, VARIABLE, answer_shells, completion
from wayline.standalone.commands.output import AsJson
from wayline.standalone.commands.run import run
from wayline.standalone.commands.simulate import simulate
from wayline.standalone.commands.version import version

NOT_KNOWN = 3
"""The exit code of `upgrade --check` where nothing is left that was seen, and something could not be looked at."""

app = typer.Typer(
    name="wayline",
    help="Run AI agents as durable jobs on a message bus, every step traced and priced.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        from wayline.chassis.running_version import running_version

        print(f"wayline {running_version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Run AI agents as durable jobs on a message bus, every step traced and priced."""


@app.command()
def up(
    servers_only: Annotated[
        bool, typer.Option("--servers-only", help="Only NATS and Postgres, migrated: services run as processes.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="On an empty data directory: ingest sample documents and show a first job.")
    ] = False,
) -> None:
    """Start everything on this machine, until Ctrl-C."""
    import uvloop

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.launch.up import up as start
        from wayline.standalone.settings import Settings

        uvloop.run(start(Settings(), servers_only=servers_only, sample=sample))


@app.command()
def serve(
    services: Annotated[
        list[str], typer.Argument(help="gateway, router, executor, retrieval, tool-registry, notifier, tracing")
    ],
) -> None:
    """Run services as a process of their own, configured by WAYLINE_ variables."""
    import uvloop

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.launch.serve import serve as start
        from wayline.standalone.settings import Settings

        uvloop.run(start(Settings(), services))


@app.command()
def migrate(
    *,
    ack_wait: Annotated[
        float | None, typer.Option(help="Seconds after which a killed executor's jobs are taken over.")
    ] = None,
    replicas: Annotated[int | None, typer.Option(help="Copies of each stream in a NATS cluster.")] = None,
    max_bytes: Annotated[
        list[str] | None,
        typer.Option("--max-bytes", metavar="STREAM=SIZE", help="How much it may hold: EVENTS=20GiB. Can be repeated."),
    ] = None,
    max_days: Annotated[
        list[str] | None,
        typer.Option("--max-days", metavar="STREAM=DAYS", help="How long it keeps: EVENTS=90. Can be repeated."),
    ] = None,
    allow_shrink: Annotated[
        bool, typer.Option("--allow-shrink", help="Also where less is chosen than there is: the oldest may go.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the database and the streams to this version, and print each change. What is chosen here stays."""
    import asyncio

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.commands.arguments import by_name
        from wayline.standalone.settings import Settings
        from wayline.standalone.setup.migrate import migrate as change

        given = {
            "ack_wait_s": ack_wait,
            "replicas": replicas,
            "stream_max_bytes": by_name("--max-bytes", max_bytes),
            "stream_max_days": by_name("--max-days", max_days),
        }
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value}
        asyncio.run(change(Settings(**chosen), allow_shrink=allow_shrink, as_json=as_json))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Find what is wrong and say what to do. Exit code 1: there is a problem."""
    import asyncio

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.doctor.report import report
        from wayline.standalone.settings import Settings

        healthy = asyncio.run(report(Settings(), as_json=as_json))
    raise typer.Exit(0 if healthy else 1)


@app.command()
def upgrade(
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Only look: nothing is changed. Exit code 1: something is left to do; 3: something is not known.",
        ),
    ] = False,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Exit code 0 also where something could not be looked at.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the running installation with this version: rights, migrations, streams, jobs, the order of restarts."""
    import asyncio

    from wayline.standalone.commands.error_exit import exit_on_error

    if not check:
        raise typer.BadParameter("name --check: an upgrade is the steps that it prints, and each is a command")
    with exit_on_error():
        from wayline.standalone.settings import Settings
        from wayline.standalone.upgrade.check_upgrade import UpgradeOutcome
        from wayline.standalone.upgrade.check_upgrade import check as compare

        outcome = asyncio.run(compare(Settings(), as_json=as_json))
    codes = {UpgradeOutcome.LEFT: 1, UpgradeOutcome.UNKNOWN: 0 if allow_unknown else NOT_KNOWN, UpgradeOutcome.DONE: 0}
    raise typer.Exit(codes[outcome])


@app.command()
def replicas(as_json: AsJson = False) -> None:
    """List the running processes of every service: version, address, whether it is ready, what it has in hand.

    Into a pipe: one line a process, name, service, version, state and what is in hand, parted by tabs.
    """
    import asyncio

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.settings import Settings
        from wayline.standalone.upgrade.show_replicas import show_replicas

        asyncio.run(show_replicas(Settings(), as_json=as_json))


@app.command()
def capacity(as_json: AsJson = False) -> None:
    """Show what the streams and the database hold, how fast that grows, when it is full, and whose it is."""
    import asyncio

    from wayline.standalone.commands.error_exit import exit_on_error

    with exit_on_error():
        from wayline.standalone.capacity import capacity as show
        from wayline.standalone.settings import Settings

        asyncio.run(show(Settings(), as_json=as_json))


app.command()(version)
app.command()(backups.backup)
app.command()(backups.restore)
app.command()(simulate)
app.command()(completion)
app.command()(run)
app.command()(knowledge.ingest)
app.command()(knowledge.search)
jobs.app.command()(replaying.replay)
jobs.app.command()(replaying.export)
jobs.app.command()(replaying.fork)
jobs.app.command("delete")(forget.delete_job)
jobs.app.command()(bulk.bulk)
jobs.app.command()(bulk.actions)
app.add_typer(jobs.app, name="jobs")
app.command()(replaying.test)
app.add_typer(sessions.app, name="sessions")
app.add_typer(schedules.app, name="schedules")
app.add_typer(webhooks.app, name="webhooks")
app.command()(jobs.trace)
app.command("open")(console_links.open_console)
app.command()(jobs.approvals)
app.command()(feedback.feedback)
app.command()(audit.audit)
app.command()(money.costs)
app.add_typer(money.budgets, name="budgets")
app.add_typer(knowledge.app, name="documents")
app.add_typer(embeddings.app, name="embeddings")
app.add_typer(memory.app, name="memory")
app.add_typer(memory.insights, name="insights")
memory.app.command("forget")(forget.user)
app.add_typer(forget.app, name="forget")
app.add_typer(administration.agents, name="agents")
app.add_typer(settings.app, name="settings")
app.add_typer(models.app, name="models")
app.add_typer(tools.app, name="tools")
app.add_typer(mcp.app, name="mcp")
app.add_typer(routing.router, name="router")
app.command()(draining.drain)
app.command()(run_controls.pause)
app.command()(run_controls.resume)
app.command()(run_controls.pauses)
app.add_typer(run_controls.running_limits, name="running-limits")
app.add_typer(access.tenants, name="tenants")
app.add_typer(access.keys, name="keys")
app.add_typer(bus.credentials, name="credentials")
app.add_typer(rotate.app, name="rotate")
app.add_typer(administration.dead_letters, name="dead-letters")


def main() -> None:
    """Run the command line."""
    # On an output that is not UTF-8, characters it cannot hold become question marks instead of a traceback.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")
    if VARIABLE in os.environ:
        answer_shells()
    command()(prog_name=PROGRAM)


@cache
def command() -> Callable[..., Any]:
    """Return the tree of all commands, which takes a tenth of a second to make."""
    return get_command(app)
