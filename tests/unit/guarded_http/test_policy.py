"""Which hosts, addresses and ports may be reached, before any socket is opened."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from wayline.guarded_http import AddressPolicy, Blocked, InvalidUrl
from wayline.guarded_http.addresses import kind_of_inside
from wayline.guarded_http.policy import AllowedHost

INSIDE = """
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 100.100.100.200 127.0.0.1 127.255.255.254
    168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.0.192 192.0.2.1 192.88.99.1
    192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1
    255.255.255.255 :: ::1 ::2 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::7f00:1
    64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1
    4000::1 5f00::1 fc00::1 fd00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1
""".split()
OUTSIDE = "8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 11.0.0.1 198.20.0.1 2606:4700::1111".split()
ODD_FORMS = """
    127.1 127.0.1 0x7f.1 0x7f000001 0x7f.0.0.1 2130706433 017700000001 0177.0.0.1 0177.1 127.0.0.01 0127.0.0.1
    00000127.0.0.1 127.0.0.0x1 0x 0xa9fea9fe 2852039166 0251.0376.0251.0376 169.254.43518 1.2.3 256.256.256.256
    4294967296 99999999999 127.0.0.1.1 foo.0x7f wiki.127 0 fe80::1%eth0 fe80::1%25eth0 ::1%lo exa%6dple.com
    %31%32%37.0.0.1 a..b -a.example a-.example ex%20ample.com a/b a@b a\\b a?b
""".split()


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_refused(address: str):
    assert kind_of_inside(ip_address(address)) is not None
    with pytest.raises(Blocked):
        AddressPolicy().check_address("host.example", 443, ip_address(address))
    with pytest.raises(Blocked):
        AddressPolicy().check_host(address, 443)


@pytest.mark.parametrize("address", OUTSIDE)
def test_a_public_address_may_be_reached(address: str):
    AddressPolicy().check_host(address, 443)
    AddressPolicy().check_address("host.example", 443, ip_address(address))


@pytest.mark.parametrize("host", ODD_FORMS)
def test_an_odd_form_of_an_address_is_no_host(host: str):
    with pytest.raises(InvalidUrl):
        AddressPolicy().check_host(host, 443)


def test_a_port_that_is_not_the_webs_is_refused():
    policy = AddressPolicy()

    policy.check_host("host.example", 8443)
    for port in (22, 25, 4222, 5432, 6379, 9200):
        with pytest.raises(Blocked, match="port"):
            policy.check_host("host.example", port)


def test_an_opened_name_opens_its_addresses_and_no_others():
    policy = AddressPolicy.of(["wiki.corp.example"])

    policy.check_address("wiki.corp.example", 443, ip_address("10.1.2.3"))
    with pytest.raises(Blocked):
        policy.check_address("other.example", 443, ip_address("10.1.2.3"))
    with pytest.raises(Blocked):
        policy.check_host("wiki.corp.example", 9000)


def test_an_opened_network_opens_what_is_in_it_on_its_port():
    policy = AddressPolicy.of(["10.1.0.0/16:9000", "[fd00::1]:443"])

    policy.check_host("10.1.2.3", 9000)
    policy.check_host("fd00::1", 443)
    policy.check_host("any.example", 9000)
    policy.check_address("any.example", 9000, ip_address("10.1.2.3"))
    for host, port in (("10.1.2.3", 443), ("10.2.0.1", 9000), ("8.8.8.8", 9000), ("fd00::2", 443)):
        with pytest.raises(Blocked):
            policy.check_host(host, port)


def test_a_host_may_be_opened_on_every_port():
    policy = AddressPolicy.of(["127.0.0.1:*", "[::1]:*"])

    for host, port in (("127.0.0.1", 22), ("127.0.0.1", 80), ("::1", 5_432)):
        policy.check_host(host, port)
    for host, port in (("127.0.0.2", 22), ("8.8.8.8", 22)):
        with pytest.raises(Blocked):
            policy.check_host(host, port)


def test_only_its_own_address_opens_a_metadata_service():
    metadata = ip_address("169.254.169.254")

    with pytest.raises(Blocked):
        AddressPolicy.of(["169.254.0.0/16"]).check_address("a.example", 80, metadata)
    with pytest.raises(Blocked):
        AddressPolicy.of(["a.example"]).check_address("a.example", 80, metadata)
    AddressPolicy.of(["169.254.169.254"]).check_address("a.example", 80, metadata)


@pytest.mark.parametrize(
    "text", ["", "http://wiki.example", "wiki.example:0", "wiki.example:70000", "127.1", "a b", "*", "*:*"]
)
def test_what_opens_no_host_is_refused_where_it_is_set(text: str):
    with pytest.raises(ValueError, match="no host|no port"):
        AllowedHost.parse(text)
