"""`wayline version`: show what is installed here, to compare machines or to report a fault."""

from __future__ import annotations

import platform
from importlib.metadata import version as of_package
from typing import Any, Final

from wayline.standalone.commands.output import AsJson, console, print_json

LIBRARIES: Final = ("nats-py", "asyncpg", "pydantic", "fastapi", "opentelemetry-sdk", "mcp")
"""Those whose versions decide how the bus, the database and others are spoken to."""


def version(as_json: AsJson = False) -> None:
    """Show the version, its commit where it is known, formats, migrations and libraries."""
    found = describe()
    if as_json:
        print_json(found)
        return
    from wayline.standalone.terminal.version_views import version_details

    console().print(version_details(found), soft_wrap=True)


def describe() -> dict[str, Any]:
    """Return everything that tells this installation from another one."""
    from wayline.chassis.running_version import running_version
    from wayline.executor.decide.approvals import RULES_VERSION
    from wayline.journal.exporting import FORMAT, VERSION
    from wayline.sandbox.snapshots import FORMAT as SNAPSHOT
    from wayline.standalone.services import MEMBERS
    from wayline.store.connecting import POSTGRES_MAJOR_MIN
    from wayline.store.migration_files import read_migrations

    running = running_version()
    return {
        "version": running.version,
        "commit": running.commit or None,
        "formats": {FORMAT: VERSION, "program.snapshot": SNAPSHOT.decode().strip(), "approval.rules": RULES_VERSION},
        "migrations": {one.schema: read_migrations(one.migrations())[-1].file for one in MEMBERS if one.schema},
        "postgres_min": POSTGRES_MAJOR_MIN,
        "python": platform.python_version(),
        "libraries": {name: of_package(name) for name in LIBRARIES},
    }
