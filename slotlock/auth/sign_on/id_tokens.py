"""Verifies the tokens that a provider signs: its ID tokens, and those that end sessions."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeGuard

from slotlock.auth.providers.connections import (
    ProviderConnection,
    SignInRejectedError,
    TokenKind,
)

if TYPE_CHECKING:
    from jwt.types import Options

# The clocks of the provider and of this server may differ by this much.
LEEWAY = timedelta(minutes=2)
# A token is used seconds after it was issued.
MAX_AGE = timedelta(minutes=15)
MAX_TOKEN_LENGTH = 100_000
MAX_ID_LENGTH = 255
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
# The types of the keys for the algorithms that settings can name, and the hashes of `at_hash`.
KEY_TYPES = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}


# PyJWT would compare the times with the clock of the host; the ids are checked here.
OPTIONS: "Options" = {
    "require": ["iss", "aud", "iat"],
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
    "verify_sub": False,
    "verify_jti": False,
}


async def verify_id_token(
    connection: ProviderConnection, tokens: Mapping[str, Any], nonce: str, now: datetime
) -> Mapping[str, Any]:
    """Return the claims of the ID token in a response (OpenID Connect Core, 3.1.3.7).

    Raises:
        SignInRejectedError: the token is not valid.
        ProviderUnavailableError: its key is not available.
    """
    claims, algorithm = await _verify(connection, tokens.get("id_token"), now, TokenKind.ID)
    _require("sub" in claims, "it has no subject")
    _require(_is_same(claims.get("nonce"), nonce), "it has another nonce")
    access_token = tokens.get("access_token")
    if "at_hash" in claims and isinstance(access_token, str):
        expected = _half_hash(algorithm, access_token)
        _require(_is_same(claims["at_hash"], expected), "it has another at_hash")
    return claims


async def verify_logout_token(
    connection: ProviderConnection, token: object, now: datetime
) -> Mapping[str, Any]:
    """Return the claims of a logout token (OpenID Connect Back-Channel Logout, 2.6).

    Raises:
        SignInRejectedError: the token is not valid.
        ProviderUnavailableError: its key is not available.
    """
    claims, _ = await _verify(connection, token, now, TokenKind.LOGOUT)
    events = claims.get("events")
    is_event = isinstance(events, dict) and isinstance(events.get(LOGOUT_EVENT), dict)
    _require(is_event, "it is no logout token")
    _require("nonce" not in claims, "it has a nonce")
    _require("jti" in claims, "it has no id")
    _require("sub" in claims or "sid" in claims, "it names no session")
    return claims


async def _verify(
    connection: ProviderConnection, token: object, now: datetime, kind: TokenKind
) -> tuple[dict[str, Any], str]:
    """Return the claims of a token and its algorithm."""
    # It imports cryptography, which servers without a provider do not need.
    import jwt

    provider = connection.provider
    _require(isinstance(token, str) and len(token) <= MAX_TOKEN_LENGTH, "there is none")
    encoded = str(token)
    try:
        header = jwt.get_unverified_header(encoded)
        algorithm = header.get("alg", "")
        _require(algorithm in provider.algorithms, f"its algorithm is {algorithm!r}")
        key = await _find_key(connection, header.get("kid"), algorithm, kind)
        claims: dict[str, Any] = jwt.decode(
            encoded,
            jwt.PyJWK(key, algorithm),
            algorithms=[algorithm],
            issuer=provider.issuer,
            audience=provider.client_id,
            options=OPTIONS,
        )
    except (jwt.PyJWTError, TypeError, ValueError, RecursionError) as error:
        raise SignInRejectedError(f"{type(error).__name__}: {error}") from None
    _check_audience(provider.client_id, claims)
    _check_times(claims, now)
    for name in ("sub", "sid", "jti"):
        _require(name not in claims or _is_id(claims[name]), f"its {name} is no id")
    return claims, algorithm


async def _find_key(
    connection: ProviderConnection, key_id: object, algorithm: str, kind: TokenKind
) -> dict[str, Any]:
    """Return the key of a token: that of its id, or the only one of its kind."""
    known_id = key_id if isinstance(key_id, str) else None
    fitting = [
        dict(key)
        for key in await connection.keys(known_id, kind)
        if key.get("kty") == KEY_TYPES[algorithm]
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (known_id is None or key.get("kid") == known_id)
    ]
    _require(len(fitting) == 1, f"{len(fitting)} keys fit its id {known_id!r}")
    return fitting[0]


def _check_audience(client_id: str, claims: Mapping[str, Any]) -> None:
    audience, client = claims["aud"], claims.get("azp")
    _require(
        client == client_id or (client is None and audience in (client_id, [client_id])),
        f"it is for {client!r}",
    )


def _check_times(claims: Mapping[str, Any], now: datetime) -> None:
    """Check the times by the clock of this deployment, with some leeway."""
    issued, expires, begins = claims.get("iat"), claims.get("exp"), claims.get("nbf", 0)
    # JSON of Python has numbers that are none, and `true` is one in Python.
    if not (_is_time(issued) and _is_time(expires) and _is_time(begins)):
        raise SignInRejectedError("its times are no numbers")
    current, leeway = now.timestamp(), LEEWAY.total_seconds()
    _require(max(issued, begins) <= current + leeway, "it is of the future")
    _require(issued >= current - MAX_AGE.total_seconds() - leeway, "it is old")
    _require(expires > current - leeway, "it has expired")


def _is_time(value: object) -> TypeGuard[float]:
    return type(value) is int or (type(value) is float and isfinite(value))


def _is_same(value: object, expected: str) -> bool:
    """Return whether a claim is a text. A comparison of texts would allow only ASCII."""
    if not isinstance(value, str):
        return False
    return hmac.compare_digest(value.encode(errors="surrogatepass"), expected.encode())


def _half_hash(algorithm: str, access_token: str) -> str:
    """Return the claim `at_hash` of an access token (OpenID Connect Core, 3.1.3.6)."""
    bits = algorithm[-3:] if algorithm[-3:].isdigit() else "512"
    digest = hashlib.new(f"sha{bits}", access_token.encode(errors="surrogatepass")).digest()
    return urlsafe_b64encode(digest[: len(digest) // 2]).decode().rstrip("=")


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_LENGTH and value.isprintable()


def _require(is_fulfilled: object, reason: str) -> None:
    if not is_fulfilled:
        raise SignInRejectedError(reason)
