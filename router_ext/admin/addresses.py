"""Which addresses a backend that the API adds may have: none by which the router would be made to ask what only its
machine can reach.
"""

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA_NAMES: Final = frozenset(
    {
        "instance-data",
        "instance-data.ec2.internal",
        "metadata",
        "metadata.azure.internal",
        "metadata.goog",
        "metadata.google.internal",
    }
)
"""Names of services that hand out a machine's credentials, in lower case without a dot at the end."""

_METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "100.100.100.200",  # Alibaba Cloud
        "168.63.129.16",  # Azure's host
        "169.254.169.254",
        "192.0.0.192",  # Oracle Cloud
        "fd00:ec2::254",
        "fd20:ce::254",  # Google Cloud
    )
)
_THIS_NETWORK: Final = ipaddress.IPv4Network("0.0.0.0/8")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_IPV4_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")
_LOW_BITS: Final = 0xFFFF_FFFF

PRIVATE: Final = "a private or loopback address"


def is_metadata_name(host: str) -> bool:
    """True for a name by which clouds serve a machine's credentials."""
    return host.lower().rstrip(".") in METADATA_NAMES


def objection(text: str, *, allow_private: bool) -> str | None:
    """What kind of address ``text``, which a resolver gave, is, where a backend may not have it; None where it may.

    An IPv4 address that stands within an IPv6 address counts as itself. ``allow_private`` allows what is private,
    shared, or of this machine; nothing allows link-local, metadata, multicast, unspecified and reserved addresses.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "no address"
    kinds = [kind for form in _forms(address) if (kind := _kind(form))]
    worst = next((kind for kind in kinds if kind != PRIVATE), None)
    if worst is not None:
        return worst
    return PRIVATE if kinds and not allow_private else None


def _forms(address: Address) -> Iterator[Address]:
    """The address itself unless it only stands for others, and those."""
    inner: list[Address] = [] if isinstance(address, ipaddress.IPv4Address) else [*_within(address)]
    yield from inner or [address]


def _within(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo
    elif address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1):
        yield ipaddress.IPv4Address(int(address) & _LOW_BITS)


def _kind(address: Address) -> str | None:
    """None for an address of the public network."""
    if address not in _METADATA and address.is_loopback:
        return PRIVATE
    found = next((kind for kind, holds in _NEVER.items() if holds(address)), None)
    if found is not None:
        return found
    # What was once site-local counts as global in the registry that Python knows.
    site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    return None if address.is_global and not site_local else PRIVATE


_NEVER: Final[Mapping[str, Callable[[Address], bool]]] = {
    "the address of a cloud's metadata service": lambda address: address in _METADATA,
    "an unspecified address": lambda address: address.is_unspecified or address in _THIS_NETWORK,
    "a link-local address": lambda address: address.is_link_local,
    "a multicast address": lambda address: address.is_multicast,
    "a reserved address": lambda address: address.is_reserved or address in _LOCAL_NAT64,
}
"""What no setting allows. An address is in no network of the other version."""
