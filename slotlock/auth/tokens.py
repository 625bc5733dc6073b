"""Signed tokens (JWT, RFC 7519) with one fixed algorithm and all claims required."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import jwt
from jwt.types import Options

from slotlock.domain.shared.text import strip_blanks
from slotlock.domain.users.user import UserId

ALGORITHM = "HS256"
ISSUER = "slotlock"
AUDIENCE = "slotlock"
ACCESS_TOKEN_TTL = timedelta(minutes=15)
REFRESH_TOKEN_TTL = timedelta(days=30)
# How far a token's time of issue may be ahead of this process: after a failover to a primary with
# another clock, processes may differ for a while. Expiry has no leeway, since clients refresh.
ISSUED_AT_LEEWAY = timedelta(minutes=2)
# HS256 needs a key at least as long as its output (RFC 7518, 3.2).
MIN_SECRET_BYTES = 32

# The tokens of this server have about 400 characters.
MAX_TOKEN_LENGTH = 2_048

_REQUIRED_CLAIMS = ["iss", "aud", "sub", "exp", "iat", "jti", "typ", "sid"]

# PyJWT would compare them with the clock of the host.
_UNCHECKED_TIMES: Options = {"verify_exp": False, "verify_iat": False, "verify_nbf": False}

_USER_ID_PATTERN = re.compile(r"[0-9a-f]{24}", re.ASCII)
_RANDOM_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)

TokenKind = Literal["access", "refresh", "export"]
INVALID_MESSAGE = "The token is not valid."
EXPIRED_MESSAGE = "The token has expired."


class BadTokenError(Exception):
    """The token is invalid, of another kind, or expired; the text is for the client."""


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """The claims of a verified token; `export` names the only file that an export token opens."""

    user_id: UserId
    session_id: str
    id: str
    expires_at: datetime
    export: str | None = None


def new_token_id() -> str:
    """Return a random id with 128 bits."""
    return secrets.token_urlsafe(16)


class TokenSigner:
    """Signs with the first key and accepts all keys, so that keys can be rotated."""

    def __init__(self, secret_keys: Sequence[str]) -> None:
        self._keys = tuple(key.encode() for key in secret_keys)
        if not self._keys or any(len(key) < MIN_SECRET_BYTES for key in self._keys):
            raise ValueError(f"every secret needs at least {MIN_SECRET_BYTES} bytes")

    def sign(self, kind: TokenKind, token_claims: TokenClaims, now: datetime) -> str:
        """Return the encoded token."""
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": token_claims.user_id,
            "exp": token_claims.expires_at,
            "iat": now,
            "jti": token_claims.id,
            "typ": kind,
            "sid": token_claims.session_id,
        }
        if token_claims.export is not None:
            claims["export"] = token_claims.export
        return jwt.encode(claims, self._keys[0], ALGORITHM)

    def authentication_code(self, purpose: str, message: bytes) -> bytes:
        """Return 32 bytes that prove that this server issued the message for the purpose."""
        return _authentication_code(self._keys[0], purpose, message)

    def is_authentic(self, purpose: str, message: bytes, code: bytes) -> bool:
        """Return whether these are the first bytes of the message's code, under any of the keys."""
        return any(
            hmac.compare_digest(_authentication_code(key, purpose, message)[: len(code)], code)
            for key in self._keys
        )

    def verify(self, kind: TokenKind, encoded_token: str, now: datetime) -> TokenClaims:
        """Return the claims of the token, which may have been pasted. Raises: BadTokenError."""
        encoded_token = strip_blanks(encoded_token)
        if len(encoded_token) > MAX_TOKEN_LENGTH or not encoded_token.isascii():
            raise BadTokenError(INVALID_MESSAGE)
        for key in self._keys:
            try:
                return _decode(kind, encoded_token, key, now)
            except jwt.InvalidSignatureError:
                continue
            except jwt.ExpiredSignatureError:
                raise BadTokenError(EXPIRED_MESSAGE) from None
            # PyJWT does not handle every malformed payload with a valid signature: times that no
            # datetime can hold and deep nesting raise other exceptions.
            except (jwt.InvalidTokenError, TypeError, ValueError, OverflowError, RecursionError):
                break
        raise BadTokenError(INVALID_MESSAGE)


def _authentication_code(key: bytes, purpose: str, message: bytes) -> bytes:
    # No JWT has a zero byte, so that a code is never the signature of a token.
    return hmac.digest(key, purpose.encode() + b"\0" + message, hashlib.sha256)


def _decode(kind: TokenKind, encoded_token: str, key: bytes, now: datetime) -> TokenClaims:
    claims = jwt.decode(
        encoded_token,
        key,
        algorithms=[ALGORITHM],
        issuer=ISSUER,
        audience=AUDIENCE,
        options={"require": _REQUIRED_CLAIMS, **_UNCHECKED_TIMES},
    )
    expires_at = _to_time(claims["exp"])
    if max(_to_time(claims["iat"]), _to_time(claims.get("nbf", 0))) > now + ISSUED_AT_LEEWAY:
        raise jwt.ImmatureSignatureError
    if expires_at <= now:
        raise jwt.ExpiredSignatureError
    user_id, session_id, token_id = claims["sub"], claims["sid"], claims["jti"]
    export = claims.get("export")
    if (
        claims["typ"] != kind
        or not _USER_ID_PATTERN.fullmatch(user_id)
        or not isinstance(session_id, str)
        or not _RANDOM_ID_PATTERN.fullmatch(session_id)
        or not _RANDOM_ID_PATTERN.fullmatch(token_id)
        or isinstance(export, str) is not (kind == "export")
    ):
        raise jwt.InvalidTokenError
    return TokenClaims(UserId(user_id), session_id, token_id, expires_at, export)


def _to_time(seconds: object) -> datetime:
    if not isinstance(seconds, int | float):
        raise jwt.InvalidTokenError
    return datetime.fromtimestamp(seconds, UTC)


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token; a random token needs no salt and no slow hash."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
