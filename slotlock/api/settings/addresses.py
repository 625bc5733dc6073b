"""What the addresses in the settings may look like, those of servers, pages and proxies."""

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, ip_address, ip_network
from urllib.parse import parse_qsl, urlsplit

from pymongo.errors import PyMongoError
from pymongo.uri_parser import parse_uri

# A host name or an address, a port and a path, without a user, a query or a fragment.
_PUBLIC_URL = re.compile(
    r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/[A-Za-z0-9._~-]+)*/?", re.ASCII
)

# A scheme, a host that may begin with `*.`, and a port.
_ORIGIN = re.compile(
    r"([a-z][a-z0-9+.-]*)://(\*\.)?([a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::(\d{1,5}))?",
    re.ASCII,
)
# No page has an origin of these schemes.
_SCHEMES_WITHOUT_PAGES = frozenset(
    {"about", "blob", "data", "file", "ftp", "javascript", "ws", "wss"}
)
# The schemes that clients send for one of HTTP, as a pattern, and its default port.
_SENT_SCHEMES = {"http": ("(?:http|ws)", ":80"), "https": ("(?:https|wss)", ":443")}


def normalize_origin(text: str) -> str:
    """Return the origin of pages as browsers send it; raises ValueError if none sends it."""
    origin = text.lower()
    # Sandboxed frames and some WebViews with local files send `null`, others send `file://`.
    if origin in ("*", "null", "file://"):
        return origin
    found = _ORIGIN.fullmatch(origin)
    scheme, subdomains, host, port = found.groups() if found else ("", "", "", "")
    host = _normalize_address(host, has_subdomains=bool(subdomains))
    if not host or scheme in _SCHEMES_WITHOUT_PAGES or (port and not 0 < int(port) < 2**16):
        raise ValueError(
            f"{text!r} is not like https://app.example.org, https://*.example.org, "
            "http://localhost:3000, capacitor://localhost, null or *: a browser sends the scheme, "
            "the host (xn--... if it is not ASCII) and the port of a page, and no path"
        )
    shown_port = f":{int(port)}" if port else ""
    if scheme in _SENT_SCHEMES and shown_port == _SENT_SCHEMES[scheme][1]:
        shown_port = ""
    return f"{scheme}://{subdomains or ''}{host}{shown_port}"


def origins_pattern(origins: Iterable[str]) -> str:
    """Return the pattern that an allowed `Origin` matches as a whole, for HTTP and sockets."""
    return f"(?i:{'|'.join(map(_origin_pattern, origins)) or '(?!)'})"


def _origin_pattern(origin: str) -> str:
    if origin == "*":
        return ".*"
    scheme, separator, address = origin.partition("://")
    # Socket clients of iOS and Android send the scheme of the socket, or the default port.
    schemes, port = _SENT_SCHEMES.get(scheme, (re.escape(scheme), ""))
    pattern = re.escape(address).replace(re.escape("*."), r"(?:[a-z0-9_-]+\.)+")
    return f"{schemes}{separator}{pattern}(?:{port})?"


def _normalize_address(host: str, *, has_subdomains: bool) -> str:
    """Return a host, an IP address in the form of browsers; empty for an invalid one."""
    if not host.startswith("[") and not host.rpartition(".")[2].isdigit():
        return host
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return ""
    if has_subdomains:
        return ""
    return f"[{address}]" if address.version == 6 else str(address)


def validate_public_url(url: str) -> None:
    """Check the address at which clients reach the server; raises ValueError."""
    if not _PUBLIC_URL.fullmatch(url):
        raise ValueError("is not like https://example.org or https://example.org/slotlock")
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ValueError("has no valid port") from None


def validate_mongo_url(url: str) -> None:
    """Check the address of MongoDB and its options; raises ValueError."""
    if not url.startswith(("mongodb://", "mongodb+srv://")):
        raise ValueError("is not like mongodb://host:27017/slotlock?replicaSet=rs0")
    if url.startswith("mongodb://"):  # +srv would ask the network
        try:
            parse_uri(url)
        except PyMongoError as error:
            raise ValueError(str(error)) from None
    # The driver reads them in this way, also after a password with `#`.
    for name, value in parse_qsl(url.partition("?")[2].replace(";", "&")):
        _validate_mongo_option(name.lower(), value.lower())


def _validate_mongo_option(name: str, value: str) -> None:
    """Reject an option that makes reads old or writes weak, and that the client cannot override."""
    if name == "readpreference" and value != "primary":
        raise ValueError("must not have a readPreference other than primary")
    if name in ("journal", "j") and value != "true":
        raise ValueError("must not have journal=false")
    if name in ("wtimeoutms", "wtimeout"):
        raise ValueError("must not have wTimeoutMS")


def validate_networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    """Check the addresses or networks (CIDR) of proxies, and return them; raises ValueError."""
    for text in networks:
        try:
            ip_network(text)
        except ValueError:
            raise ValueError(f"{text!r} is not like 10.0.0.7, 10.0.0.0/8 or fd00::/8") from None
    return networks


def trusted_networks(networks: Sequence[str]) -> list[str]:
    """Return the networks in the forms in which sockets show their peers.

    A socket for both versions shows an IPv4 address as IPv6.
    """
    forms = []
    for network in map(ip_network, networks):
        forms.append(str(network))
        if isinstance(network, IPv4Network):
            forms.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return forms
