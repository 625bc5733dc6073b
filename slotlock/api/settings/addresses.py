"""What the addresses in the settings may look like."""

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

from pymongo.errors import PyMongoError
from pymongo.uri_parser import parse_uri

# A host name or an address, a port and a path, without a user, a query or a fragment.
_PUBLIC_URL = re.compile(
    r"https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/[A-Za-z0-9._~-]+)*/?", re.ASCII
)


def validate_origins(origins: Iterable[str]) -> None:
    """Check the origins of pages; raises ValueError."""
    for origin in origins:
        if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
            raise ValueError(f"{origin!r} is not like https://app.example.org")


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
