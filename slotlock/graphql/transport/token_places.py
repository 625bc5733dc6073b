"""Where clients put an access token, apart from the header `Authorization`.

Clients of other servers have habits of their own. A token that the server ignored would make its
client anonymous without a word, so each one is either used or rejected.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

ADDRESS_MESSAGE = "A token belongs in `Authorization` or `connection_init`, not in the address"
PAYLOAD_MESSAGE = 'The payload carries a token as {"authorization": "Bearer ..."}'
# Fields that contain a token without `Bearer`, as `_plain` writes them: `authToken` of Apollo's
# documentation, `access_token` of OAuth (RFC 6750, 2.3).
_TOKEN_FIELDS = ("authtoken", "accesstoken", "token")
# A JSON Web Token (RFC 7519): two JSON objects in Base64, and a signature.
_TOKEN = re.compile(r"\beyJ[\w-]+\.eyJ[\w-]+\.")


class MisplacedTokenError(Exception):
    """A socket has a token only where the server does not read it; the text is for the client."""


def find_authorization(
    payload: Mapping[str, Any], handshake: str | None, query_string: bytes
) -> object:
    """Return the authorization in the payload of `connection_init`, or else in the handshake.

    In the payload it may be in an object, such as `headers`.

    Raises:
        MisplacedTokenError: there is only a token in another place.
    """
    unread: list[str] = []
    for fields in (payload, *(each for each in payload.values() if isinstance(each, dict))):
        values = {_plain(name): each for name, each in fields.items() if each not in (None, "")}
        if "authorization" in values:
            return values["authorization"]
        for name in _TOKEN_FIELDS:
            if name in values:
                token = str(values[name]).strip()
                return token if " " in token else f"Bearer {token}"
        unread += (each for each in values.values() if isinstance(each, str))
    if handshake:
        return handshake
    if has_token(query_string):
        raise MisplacedTokenError(ADDRESS_MESSAGE)
    if any(map(_TOKEN.search, unread)):
        raise MisplacedTokenError(PAYLOAD_MESSAGE)
    return None


def has_token(query_string: bytes) -> bool:
    """Return whether an address contains a token. It is never read: proxies log addresses."""
    if not query_string:
        return False
    text = query_string.decode("latin-1")
    names = {_plain(name) for name, _ in parse_qsl(text)}
    return not names.isdisjoint(("authorization", *_TOKEN_FIELDS)) or bool(_TOKEN.search(text))


def _plain(name: str) -> str:
    """Return a name without capitals, hyphens and underscores."""
    return re.sub("[-_]", "", name).lower()
