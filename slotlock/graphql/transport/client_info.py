"""Where a request comes from, as far as that can be told apart."""

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address

from starlette.requests import HTTPConnection
from starlette.types import Scope

from slotlock.graphql.context import ClientInfo

# What one customer of a provider has of IPv6 at the least (RFC 6177).
IPV6_PREFIX = 64
MAX_USER_AGENT_LENGTH = 200


def client_address(scope: Scope) -> str | None:
    """Whom a request is counted to: an IPv4 address, or a /64 of IPv6.

    None when there is none to tell, as behind a UNIX socket. A trusted proxy may have named
    something else than an address: that is one for all of its kind.
    """
    client = scope.get("client")
    return _normalize_address(client[0]) if client else None


def client_info(connection: HTTPConnection) -> ClientInfo:
    """The program at the other end of a connection."""
    agent = _printable(connection.headers.get("user-agent", "")[:MAX_USER_AGENT_LENGTH])
    return ClientInfo(client_address(connection.scope), agent or None)


@lru_cache(maxsize=1_000)
def _printable(user_agent: str) -> str:
    return "".join(filter(str.isprintable, user_agent)).strip()


@lru_cache(maxsize=10_000)
def _normalize_address(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return "unknown"
    if not isinstance(address, IPv6Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((int(address), IPV6_PREFIX), strict=False))
