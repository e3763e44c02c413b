"""Which hosts, addresses and ports a request may reach."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from wayline.guarded_http.addresses import METADATA, Address, Network, kind_of_inside
from wayline.guarded_http.errors import Blocked, InvalidUrl

PORTS = (80, 443, 8080, 8443)
"""Where web servers are: other ports are other services, which an HTTP request may be a command to."""

_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT_MAX = 65_535
ANY_PORT = ":*"


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """An inside host that an installation opens: a name, an address or a network, and perhaps one port."""

    name: str | None = None
    network: Network | None = None
    port: int | None = None
    any_port: bool = False
    """Also those that are not the web's."""

    @classmethod
    def parse(cls, text: str) -> AllowedHost:
        """Read `wiki.corp.example`, `wiki.corp.example:9000`, `10.1.2.3:*`, `10.1.0.0/16`, `[fd00::1]:80`.

        Raises ValueError.
        """
        plain = text.strip().lower()
        any_port = plain.endswith(ANY_PORT)
        host, port = (plain.removesuffix(ANY_PORT), None) if any_port else _split_port(plain)
        try:
            return cls(network=ip_network(host.strip("[]")), port=port, any_port=any_port)
        except ValueError:
            pass
        if not _NAME.fullmatch(host) or ends_in_a_number(host):
            raise ValueError(
                f"{text!r} is no host: give a name, an address or a network, with a port, or `:*`, where it is not one "
                f"of {', '.join(map(str, PORTS))}, such as wiki.example, 10.1.2.3:9000 or 10.1.0.0/16"
            )
        return cls(name=host, port=port, any_port=any_port)

    def opens_port(self, port: int) -> bool:
        """Return whether this opens a port that is not the web's."""
        return self.any_port or self.port == port

    def holds(self, host: str, port: int, address: Address) -> bool:
        """Return whether this opens an address that a host has."""
        if self.port not in (None, port):
            return False
        if self.network is None:
            return self.name == host and address not in METADATA
        if address.version != self.network.version or address not in self.network:
            return False
        # A network that happens to hold a metadata service does not open it: only its own address does.
        return address not in METADATA or self.network.num_addresses == 1


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """The public internet on the web's ports, and what an installation opens of its own inside."""

    allowed: tuple[AllowedHost, ...] = ()
    ports: tuple[int, ...] = PORTS

    @classmethod
    def of(cls, allowed: Iterable[str] = (), *, ports: Iterable[int] = PORTS) -> AddressPolicy:
        """Make a policy of its settings. Raises ValueError, naming what is wrong."""
        return cls(tuple(AllowedHost.parse(one) for one in allowed), tuple(ports))

    def check_host(self, host: str, port: int) -> None:
        """Refuse a host by its form and a port by its number, before any name is resolved.

        Raises InvalidUrl or Blocked.
        """
        address = address_of(host)
        if address is None and (not _NAME.fullmatch(host) or ends_in_a_number(host)):
            raise InvalidUrl(f"{host!r} is neither a host name nor an IP address in its plain form")
        opened = any(one.opens_port(port) and one.name in (None, host) for one in self.allowed)
        if port not in self.ports and not opened:
            raise Blocked(f"port {port} of {host} may not be used: only {', '.join(map(str, self.ports))}")
        if address is not None:
            self.check_address(host, port, address)

    def check_address(self, host: str, port: int, address: Address) -> None:
        """Refuse an address that is not public and not opened, or on a port that is not opened. Raises Blocked."""
        if self.opens(host, port, address):
            return
        if kind := kind_of_inside(address):
            raise Blocked(f"{host} may not be reached: it is {kind}")
        if port not in self.ports:
            raise Blocked(f"port {port} of {host} may not be used: only {', '.join(map(str, self.ports))}")

    def opens(self, host: str, port: int, address: Address) -> bool:
        """Return whether the installation has opened an address that a host has, on a port."""
        return any(
            one.holds(host, port, address) and (one.opens_port(port) or port in self.ports) for one in self.allowed
        )


def address_of(host: str) -> Address | None:
    """Return the address that a host is, in its one plain form; None for anything else, with a zone too."""
    if "%" in host:
        return None
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def ends_in_a_number(host: str) -> bool:
    """Return whether resolvers read a name as an odd form of an IPv4 address: `127.1`, `0x7f000001`, `017700000001`."""
    last = host.removesuffix(".").rpartition(".")[2]
    return _NUMBER.fullmatch(last) is not None


def _split_port(text: str) -> tuple[str, int | None]:
    bare, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or (":" in bare and not bare.endswith("]")):
        return text, None
    if not 0 < int(port) <= _PORT_MAX:
        raise ValueError(f"{text!r} has no port between 1 and {_PORT_MAX}")
    return bare, int(port)
