"""The address and user agent of the client at the other end of a connection."""

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address

from starlette.types import Scope

from slotlock.graphql.context import ClientInfo

# Providers assign at least this much of IPv6 to each customer (RFC 6177).
IPV6_PREFIX = 64
MAX_USER_AGENT_LENGTH = 200


def client_address(scope: Scope) -> str | None:
    """Return the address that rate limits count: an IPv4 address or an IPv6 network of /64.

    None if the connection has no address, as with a UNIX socket. "unknown" if a trusted proxy
    sent something else than an address.
    """
    host = client_host(scope)
    return None if host is None else _normalize_address(host)


def client_host(scope: Scope) -> str | None:
    """Return the host at the other end of a connection; None if the connection has no address."""
    client = scope.get("client")
    return client[0] if client else None


@lru_cache(maxsize=10_000)
def client_info(host: str | None, user_agent: str) -> ClientInfo:
    """Return the address and the printable part of the user agent of a client.

    The agent has at most MAX_USER_AGENT_LENGTH characters.
    """
    printable = "".join(filter(str.isprintable, user_agent)).strip()
    return ClientInfo(None if host is None else _normalize_address(host), printable or None)


@lru_cache(maxsize=10_000)
def _normalize_address(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return "unknown"
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((int(address), IPV6_PREFIX), strict=False))
