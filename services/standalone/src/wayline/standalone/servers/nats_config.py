"""The configuration of the embedded bus."""

from __future__ import annotations

MAX_PAYLOAD = "1MB"
# Streams reserve their limits, about 32 GiB together; the default is a share of the disk's free space, which on a small
# disk would refuse to declare them. `wayline doctor` watches the bytes that are really stored.
MAX_FILE_STORE = "64GB"
MAX_MEMORY_STORE = "256MB"
# By default the server asks after two minutes: so long it hands requests to a client whose machine is gone or cut off.
CLIENT_PINGS = ('ping_interval: "5s"', "ping_max: 2")


def render(accounts: str, *, monitor_port: int | None = None) -> str:
    """Return the text of `nats.conf`, without host and port, which are on the server's command line.

    `accounts`: the text of `render_accounts`, or a line that includes its file.
    """
    lines = [
        "server_name: wayline",
        f"max_payload: {MAX_PAYLOAD}",
        *CLIENT_PINGS,
        # The default acknowledges before it writes to disk: a power cut would lose accepted jobs.
        'jetstream { store_dir: ".", sync_interval: always, '
        f"max_file_store: {MAX_FILE_STORE}, max_memory_store: {MAX_MEMORY_STORE} }}",
    ]
    if monitor_port is not None:
        lines.append(f'http: "127.0.0.1:{monitor_port}"')
    lines.append(accounts)
    return "\n".join(lines) + "\n"
