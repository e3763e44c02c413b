"""Which addresses are not on the public internet, by an explicit list.

`ipaddress.is_global` is no help: in Python 3.11 it holds NAT64 and 6to4 forms of loopback, and multicast, for global.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

METADATA = tuple(
    ip_address(text) for text in ("169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)
"""Addresses at which clouds hand out credentials to every process inside."""

_DENIED: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "this host"),
    ("10.0.0.0/8", "a private address"),
    ("100.64.0.0/10", "an address of a carrier's inside"),
    ("127.0.0.0/8", "a loopback address"),
    ("169.254.0.0/16", "a link-local address"),
    ("172.16.0.0/12", "a private address"),
    ("192.0.0.0/24", "a reserved address"),
    ("192.0.2.0/24", "an address for documentation"),
    ("192.88.99.0/24", "a 6to4 relay"),
    ("192.168.0.0/16", "a private address"),
    ("198.18.0.0/15", "an address for measurements"),
    ("198.51.100.0/24", "an address for documentation"),
    ("203.0.113.0/24", "an address for documentation"),
    ("224.0.0.0/4", "a multicast address"),
    ("240.0.0.0/4", "a reserved address"),
    ("::/128", "this host"),
    ("::1/128", "a loopback address"),
    ("::/96", "an IPv4 address in an old form of IPv6"),
    ("::ffff:0:0/96", "an IPv4 address in a form of IPv6"),
    ("::ffff:0:0:0/96", "an IPv4 address in a form of IPv6"),
    ("64:ff9b::/96", "an IPv4 address in a form of IPv6 (NAT64)"),
    ("64:ff9b:1::/48", "an IPv4 address in a form of IPv6 (NAT64)"),
    ("2001::/23", "a reserved address"),
    ("2001:db8::/32", "an address for documentation"),
    ("2002::/16", "an IPv4 address in a form of IPv6 (6to4)"),
    ("3fff::/20", "an address for documentation"),
    ("fc00::/7", "a private address"),
    ("fe80::/10", "a link-local address"),
    ("fec0::/10", "a private address"),
    ("ff00::/8", "a multicast address"),
)
_NETWORKS: tuple[tuple[Network, str], ...] = tuple((ip_network(text), kind) for text, kind in _DENIED)
_UNICAST6 = IPv6Network("2000::/3")
"""The only part of IPv6 that is handed out: the rest is reserved, and may be anything one day."""


def kind_of_inside(address: Address) -> str | None:
    """Return what kind of address this is when it is not a public one; None for a public one."""
    if address in METADATA:
        return "an address of a cloud's metadata"
    for network, kind in _NETWORKS:
        if address.version == network.version and address in network:
            return kind
    return None if address.version == 4 or address in _UNICAST6 else "a reserved address"
