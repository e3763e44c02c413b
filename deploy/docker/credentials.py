"""Make the credentials of an installation in containers: one directory for each of them, which sees only its own.

Runs before everything else and may run again: what is there stays, so that a restart changes no password.
"""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from urllib.parse import quote

from wayline.standalone.bus.accounts_file import ACCOUNTS_FILE, write_accounts
from wayline.standalone.bus.stored_clients import locked
from wayline.standalone.settings import Settings
from wayline.standalone.setup.credentials import write_private
from wayline.standalone.setup.installation import DATABASE, GRAFANA, GRAFANA_ROLE, Installation, ServerAccess

NATS_URL = os.environ.get("WAYLINE_NATS_URL", "nats://nats:4222")
POSTGRES_ADDRESS = os.environ.get("WAYLINE_POSTGRES_ADDRESS", "postgres:5432")
TEMPLATE = Path(__file__).with_name("nats.conf.template")
"""Beside this file in the image; in the repository it has a folder of its own."""
if not TEMPLATE.exists():
    TEMPLATE = Path(__file__).parents[1] / "nats" / TEMPLATE.name
PUBLIC = 0o444
"""Read by a server that runs as another user; the directory is mounted in that server's container only."""


def main(root: Path, template: Path) -> None:
    """Fill `root`: `admin/`, one directory for each service, `nats/`, `postgres/`, `grafana/`."""
    admin = Installation(root / "admin")
    admin.prepare()
    keys = admin.load_credentials()
    password = _kept(root / "postgres" / "password", secrets.token_urlsafe(24))
    access = ServerAccess(
        nats_url=NATS_URL,
        admin_dsn=f"postgresql://postgres:{quote(password)}@{POSTGRES_ADDRESS}/{DATABASE}",
        credentials=keys,
        own_bus=True,
    )
    for name, environment in access.environments().items():
        home = Installation(root / name)
        home.prepare()
        text = "".join(f"{key}={value}\n" for key, value in environment.items())
        write_private(home.credentials / f"{name}.env", text)
    _written(root / "grafana" / "password", keys.passwords[GRAFANA])
    _written(root / "grafana" / "user", keys.role_of(GRAFANA_ROLE))
    _written(root / "nats" / "nats.conf", template.read_text())
    settings = Settings(data_dir=admin.root, nats_accounts_file=root / "nats" / ACCOUNTS_FILE)
    with locked(admin.clients):
        # Read again: a rotation may have ended meanwhile.
        write_accounts(settings, admin, admin.load_credentials())


def _written(path: Path, text: str) -> None:
    """Write a file anew."""
    path.unlink(missing_ok=True)
    _kept(path, text)


def _kept(path: Path, text: str) -> str:
    """What the file says; `text` is written where there is none."""
    path.parent.mkdir(mode=0o755, exist_ok=True)
    if not path.exists():
        path.write_text(text)
        path.chmod(PUBLIC)
    return path.read_text()


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else os.environ["WAYLINE_DATA_DIR"]), TEMPLATE)
