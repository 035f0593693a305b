"""Which addresses a backend that the API adds may have."""

import pytest

from router_ext.admin.addresses import PRIVATE, is_metadata_name, objection

METADATA = "the address of a cloud's metadata service"
LINK_LOCAL = "a link-local address"
MULTICAST = "a multicast address"
UNSPECIFIED = "an unspecified address"
RESERVED = "a reserved address"

PUBLIC = [
    "8.8.8.8",
    "1.0.0.1",
    "172.15.255.255",
    "172.32.0.1",
    "169.253.255.255",
    "169.255.0.1",
    "223.255.255.254",
    "2606:4700:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
]
OWN = [
    "127.0.0.1",
    "127.255.255.254",
    "::1",
    "10.0.0.0",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "fd12:3456::1",
    "fc00::1",
    "fec0::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.1.2.3",
    "64:ff9b::a00:1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2002:c0a8:101::1",
    "::10.0.0.1",
]
NEVER = {
    "169.254.169.254": METADATA,
    "::ffff:169.254.169.254": METADATA,
    "::ffff:a9fe:a9fe": METADATA,
    "64:ff9b::a9fe:a9fe": METADATA,
    "2002:a9fe:a9fe::1": METADATA,
    "::169.254.169.254": METADATA,
    "fd00:ec2::254": METADATA,
    "100.100.100.200": METADATA,
    "168.63.129.16": METADATA,
    "169.254.0.1": LINK_LOCAL,
    "fe80::1": LINK_LOCAL,
    "fe80::1%2": LINK_LOCAL,
    "fe80::1%eth0": LINK_LOCAL,
    "224.0.0.1": MULTICAST,
    "239.255.255.255": MULTICAST,
    "ff02::1": MULTICAST,
    "::ffff:224.0.0.1": MULTICAST,
    "0.0.0.0": UNSPECIFIED,
    "0.1.2.3": UNSPECIFIED,
    "::": UNSPECIFIED,
    "::ffff:0.0.0.0": UNSPECIFIED,
    "240.0.0.1": RESERVED,
    "255.255.255.255": RESERVED,
    "64:ff9b:1::a00:1": RESERVED,
    "not an address": "no address",
}


@pytest.mark.parametrize("address", PUBLIC)
@pytest.mark.parametrize("allow_private", [True, False])
def test_public_addresses_are_always_allowed(address: str, allow_private: bool) -> None:
    """Also where they stand within an IPv6 address."""
    assert objection(address, allow_private=allow_private) is None


@pytest.mark.parametrize("address", OWN)
def test_private_and_loopback_addresses_need_leave(address: str) -> None:
    """In whatever form they come."""
    assert objection(address, allow_private=False) == PRIVATE
    assert objection(address, allow_private=True) is None


@pytest.mark.parametrize(("address", "kind"), NEVER.items())
@pytest.mark.parametrize("allow_private", [True, False])
def test_some_addresses_are_never_allowed(address: str, kind: str, allow_private: bool) -> None:
    """A backend never lives there, and something that trusts its neighbours does."""
    assert objection(address, allow_private=allow_private) == kind


@pytest.mark.parametrize("name", ["metadata.google.internal", "METADATA.google.INTERNAL.", "metadata", "instance-data"])
def test_names_of_metadata_services_are_known(name: str) -> None:
    """Case and a dot at the end do not matter."""
    assert is_metadata_name(name)


@pytest.mark.parametrize("name", ["metadata.example.org", "google.internal", "mymetadata", ""])
def test_other_names_are_not(name: str) -> None:
    """Only the whole name counts."""
    assert not is_metadata_name(name)
