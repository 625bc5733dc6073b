"""Which addresses a server may call on behalf of others.

The check is made where a socket is created, with the address that it connects to. A check of the
URL or of the resolver alone lets literals, unusual notations and changing names through.
"""

import errno
import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

# By https://www.iana.org/assignments/ipv6-unicast-address-assignments all others are reserved.
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
# Those that some version of `ipaddress` takes for public, or that a gateway may translate. NAT64
# and mapped addresses are not global unicast.
NOT_PUBLIC = [
    ipaddress.ip_network(each)
    for each in (
        "192.0.0.0/24",  # for protocols; metadata of Oracle
        "168.63.129.16/32",  # the host of a virtual machine in Azure
        "192.88.99.0/24",  # relays of 6to4
        "2001::/23",  # Teredo and others
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
]


# The same for a name that nobody knows: which names the own network has is nobody's business.
NO_PUBLIC_ADDRESS = "the host has no public address"


class ForbiddenAddressError(OSError):
    """An address is not public."""


def is_public(text: str) -> bool:
    """Return whether an IP address is one of the public internet."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address not in GLOBAL_UNICAST:
        return False
    return not any(address in network for network in NOT_PUBLIC)


def public_socket(address_info: Sequence[Any]) -> socket.socket:
    """Create a socket for one of the results of `getaddrinfo`.

    Raises:
        ForbiddenAddressError: the address is not public.
    """
    family, kind, protocol, _, address = address_info
    if family not in (socket.AF_INET, socket.AF_INET6) or not is_public(address[0]):
        raise ForbiddenAddressError(errno.EACCES, NO_PUBLIC_ADDRESS)
    return socket.socket(family, kind, protocol)
