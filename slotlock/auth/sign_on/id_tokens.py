"""Verifies the tokens that a provider signs: its ID tokens, and those that end sessions."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from slotlock.auth.providers.connections import ProviderConnection, SignInRejectedError

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
    claims, algorithm = await _verify(connection, tokens.get("id_token"), now)
    _require("sub" in claims and "exp" in claims, "it has no subject or no end")
    _require(
        isinstance(claims.get("nonce"), str) and hmac.compare_digest(claims["nonce"], nonce),
        "it has another nonce",
    )
    access_token, expected = tokens.get("access_token"), claims.get("at_hash")
    if expected is not None and isinstance(access_token, str):
        _require(expected == _half_hash(algorithm, access_token), "it has another at_hash")
    return claims


async def verify_logout_token(
    connection: ProviderConnection, token: object, now: datetime
) -> Mapping[str, Any]:
    """Return the claims of a logout token (OpenID Connect Back-Channel Logout, 2.6).

    Raises:
        SignInRejectedError: the token is not valid.
        ProviderUnavailableError: its key is not available.
    """
    claims, _ = await _verify(connection, token, now)
    events = claims.get("events")
    _require(isinstance(events, dict) and LOGOUT_EVENT in events, "it is no logout token")
    _require("nonce" not in claims, "it has a nonce")
    _require("jti" in claims and "exp" in claims, "it has no id or no end")
    _require("sub" in claims or "sid" in claims, "it names no session")
    return claims


async def _verify(
    connection: ProviderConnection, token: object, now: datetime
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
        key = await _find_key(connection, header.get("kid"), algorithm)
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
    connection: ProviderConnection, key_id: object, algorithm: str
) -> dict[str, Any]:
    """Return the key of a token: that of its id, or the only one of its kind."""
    known_id = key_id if isinstance(key_id, str) else None
    fitting = [
        dict(key)
        for key in await connection.keys(known_id)
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
    times = {name: claims.get(name) for name in ("iat", "exp", "nbf")}
    _require(
        all(
            value is None or (isinstance(value, int | float) and not isinstance(value, bool))
            for value in times.values()
        ),
        "its times are no numbers",
    )
    current, leeway = now.timestamp(), LEEWAY.total_seconds()
    issued, expires, begins = times["iat"] or 0, times["exp"], times["nbf"] or 0
    _require(max(issued, begins) <= current + leeway, "it is of the future")
    _require(issued >= current - MAX_AGE.total_seconds() - leeway, "it is old")
    _require(expires is None or expires > current - leeway, "it has expired")


def _half_hash(algorithm: str, access_token: str) -> str:
    """Return the claim `at_hash` of an access token (OpenID Connect Core, 3.1.3.6)."""
    bits = algorithm[-3:] if algorithm[-3:].isdigit() else "512"
    digest = hashlib.new(f"sha{bits}", access_token.encode()).digest()
    return urlsafe_b64encode(digest[: len(digest) // 2]).decode().rstrip("=")


def _is_id(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_LENGTH and value.isprintable()


def _require(is_fulfilled: object, reason: str) -> None:
    if not is_fulfilled:
        raise SignInRejectedError(reason)
