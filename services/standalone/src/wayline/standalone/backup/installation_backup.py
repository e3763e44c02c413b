"""`wayline backup` and `wayline restore`."""

from __future__ import annotations

import dataclasses
import json
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wayline.client import MACHINE_KEY
from wayline.standalone.backup.backup_files import BackupReader
from wayline.standalone.backup.kept_backups import kept_folder, new_file, remove_older, remove_unfinished
from wayline.standalone.backup.manifest import Manifest
from wayline.standalone.backup.restore_backup import restore_backup
from wayline.standalone.backup.take_backup import CLIENTS, KEYS, MACHINE, take_backup
from wayline.standalone.errors import BackupFailed
from wayline.standalone.servers.embedded import started_servers
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import write_private
from wayline.standalone.setup.installation import Installation, ServerAccess, write_environments
from wayline.standalone.setup.migrate import find_servers
from wayline.standalone.terminal.capacity_views import size


async def backup(
    settings: Settings, path: Path, *, credentials: bool = True, keep: int | None = None, as_json: bool = False
) -> None:
    """Take a backup of what runs, or of the embedded servers, which are started for it. Raises StandaloneError.

    With `keep` the path is a folder, in which so many backups of this installation stay.
    """
    if keep is None:
        await _backup(settings, path, credentials=credentials, as_json=as_json)
        return
    with kept_folder(path):
        # Before, so that one that fails every night does not fill the disk on which it fails.
        gone = remove_unfinished(path)
        file = new_file(path, datetime.now(UTC))
        manifest = await _backup(settings, file, credentials=credentials, as_json=as_json)
        for older in (*gone, *remove_older(path, keep=keep, database=manifest.database)):
            if not as_json:
                print(f"removed {older}")


async def _backup(settings: Settings, path: Path, *, credentials: bool, as_json: bool) -> Manifest:
    installation = Installation(settings.data_dir.absolute())
    if not (_of_ones_own(settings) or installation.keys.exists()):
        raise BackupFailed(f"there is no installation in {installation.root}: name its directory by WAYLINE_DATA_DIR.")
    installation.prepare()
    installation.require_restored()

    def tell(part: str, bytes_: int, done: bool) -> None:
        if not as_json:
            print(f"{part}  {size(bytes_)}{'' if done else ' …'}", flush=True)

    async with AsyncExitStack() as stack:
        access = await _access(settings, installation, stack)
        try:
            manifest = await take_backup(access, installation, path, credentials=credentials, tell=tell)
        except OSError as error:
            raise BackupFailed(f"{path}: {error.strerror or error}. What is there is no backup: remove it.") from error
    whole = sum(part.bytes for part in manifest.parts.values())
    if as_json:
        print(json.dumps({"path": str(path), "bytes": whole, "began_at": manifest.began_at.isoformat()}))
        return manifest
    print(f"{path} holds all that was acknowledged before {manifest.began_at:%Y-%m-%d %H:%M:%S} UTC: {size(whole)}")
    if credentials:
        print("Keys, passwords and secrets are inside: keep it where only you can read it.")
    return manifest


def _of_ones_own(settings: Settings) -> bool:
    """Return whether both servers are the user's, so that nothing is known of their data here."""
    return settings.nats_url is not None and settings.admin_dsn is not None


async def _access(settings: Settings, installation: Installation, stack: AsyncExitStack) -> ServerAccess:
    """Return the servers that run; embedded ones that do not are started until the backup is taken."""
    if _of_ones_own(settings) or installation.running() is not None:
        return find_servers(settings, installation)
    stack.enter_context(installation.locked())
    servers = started_servers(settings, installation, installation.load_credentials())
    return await stack.enter_async_context(servers)


async def restore(
    settings: Settings,
    path: Path,
    *,
    replace: str | None = None,
    replicas: int | None = None,
    nothing_after: bool = False,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    """Restore a backup into this installation, whose services do not run. Raises StandaloneError."""
    source = BackupReader(path)

    def tell(line: str) -> None:
        if not as_json:
            print(line, flush=True)

    source.verify(lambda part: tell(f"{part} is whole"))
    installation = Installation(settings.data_dir.absolute())
    name = installation.root.name
    if replace is not None and replace != name:
        raise BackupFailed(f"`--replace {replace}`: this installation is called {name}. Nothing was changed.")
    if dry_run:
        _print_plan(source, installation, as_json=as_json)
        return
    installation.prepare()
    with installation.locked():
        _take_identities(source, installation)
        async with started_servers(settings, installation, installation.load_credentials()) as access:

            def begun() -> None:
                write_private(installation.restoring_file, json.dumps({"backup": str(path.absolute())}) + "\n")
                _take_keys(source, installation)

            recovered = await restore_backup(
                access,
                source,
                tell=tell,
                name=name,
                replace=replace is not None or installation.restoring_file.exists(),
                replicas=replicas,
                nothing_after=nothing_after,
                begun=begun,
            )
            write_environments(installation, _with_new_keys(access, installation))
        installation.restoring_file.unlink()
    if as_json:
        print(json.dumps({"restored": str(path), "recovered": recovered.as_json()}))
        return
    print(
        f"restored; {recovered.tickets} jobs go on from where their logs end, {recovered.lapsed_calls} calls may "
        f"have had their effect, {recovered.left_out} jobs began after the backup and are not in it"
    )
    print("Start the services, then run `wayline doctor`.")


def _print_plan(source: BackupReader, installation: Installation, *, as_json: bool) -> None:
    """Print what a restore would do."""
    manifest = source.manifest
    streams: dict[str, Any] = {stream.name: stream.state["messages"] for stream in manifest.streams}
    plan = {
        "into": str(installation.root),
        "taken_by": manifest.wayline,
        "as_of": manifest.began_at.isoformat(),
        "schemas": manifest.schemas,
        "streams": streams,
        "credentials": manifest.credentials,
    }
    if as_json:
        print(json.dumps(plan))
        return
    print(f"would restore into {installation.root} what Wayline {manifest.wayline} held at {manifest.began_at:%c} UTC:")
    print(f"schemas {', '.join(manifest.schemas)}")
    for name, messages in streams.items():
        print(f"stream {name}: {messages} messages")
    print("with its keys and credentials" if manifest.credentials else "without keys and credentials")


def _take_identities(source: BackupReader, installation: Installation) -> None:
    """Write the backup's credentials where there are none: the embedded servers start with them."""
    if source.manifest.credentials and not installation.keys.exists():
        write_private(installation.keys, _text(source, KEYS))
        _take_clients(source, installation)


def _take_keys(source: BackupReader, installation: Installation) -> None:
    """Take over the keys that secrets are encrypted with; seeds and passwords stay those that the servers know."""
    if not source.manifest.credentials:
        return
    stored, taken = json.loads(installation.keys.read_text()), json.loads(_text(source, KEYS))
    stored["ciphers"] = {**stored.get("ciphers", {}), **taken.get("ciphers", {})}
    write_private(installation.keys, json.dumps(stored, indent=1) + "\n")
    _take_clients(source, installation)


def _take_clients(source: BackupReader, installation: Installation) -> None:
    """Take over the bus's clients, and the key with which commands on this machine act."""
    for part, file in ((CLIENTS, installation.clients), (MACHINE, installation.credentials / MACHINE_KEY)):
        if part in source.manifest.parts:
            write_private(file, _text(source, part))


def _with_new_keys(access: ServerAccess, installation: Installation) -> ServerAccess:
    return dataclasses.replace(access, credentials=installation.load_credentials())


def _text(source: BackupReader, part: str) -> str:
    return b"".join(source.chunks(part)).decode()
