"""Which TCP ports of the loopback interface a server may take."""

import secrets
import socket

from wayline.embedded.errors import PortTaken

LOOPBACK = "127.0.0.1"
# Below the range the kernel gives to outgoing connections, so that no client takes the port during a restart.
FREE_PORTS = range(20_000, 32_000)
FREE_PORT_TRIES_MAX = 100


def free_port() -> int:
    """Find a port on which nothing listens now."""
    for _ in range(FREE_PORT_TRIES_MAX):
        port = secrets.choice(FREE_PORTS)
        if is_free(port):
            return port
    raise OSError(f"no free port found in {FREE_PORTS} after {FREE_PORT_TRIES_MAX} tries")


def require_free(port: int, *, server: str, variable: str) -> None:
    """Refuse a taken port by the name of the variable that changes it."""
    if not is_free(port):
        raise PortTaken(server=server, port=port, variable=variable)


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
