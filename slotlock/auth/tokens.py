"""Signed tokens (JWT, RFC 7519) with one fixed algorithm and all claims required.

PyJWT would import cryptography, which takes a tenth of a second of every start and which HMAC does
not need.
"""

import hashlib
import hmac
import json
import re
import secrets
import unicodedata
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from slotlock.domain.shared.text import strip_blanks
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import MailTopic, UserId

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

_TOKEN_PATTERN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
_USER_ID_PATTERN = re.compile(r"[0-9a-f]{24}", re.ASCII)
_RANDOM_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)

TokenKind = Literal["access", "refresh", "export"]
INVALID_MESSAGE = "The token is not valid."
EXPIRED_MESSAGE = "The token has expired."


class BadTokenError(Exception):
    """The token is invalid, of another kind, or expired; the text is for the client."""


@value_object
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
            "exp": int(token_claims.expires_at.timestamp()),
            "iat": int(now.timestamp()),
            "jti": token_claims.id,
            "typ": kind,
            "sid": token_claims.session_id,
        }
        if token_claims.export is not None:
            claims["export"] = token_claims.export
        message = f"{_HEADER}.{_encode_part(json.dumps(claims, separators=(',', ':')).encode())}"
        return f"{message}.{_encode_part(_signature(self._keys[0], message))}"

    def authentication_code(self, purpose: str, message: bytes) -> bytes:
        """Return 32 bytes that prove that this server issued the message for the purpose."""
        return self.authentication_codes(purpose, message)[0]

    def authentication_codes(self, purpose: str, message: bytes) -> list[bytes]:
        """Return the codes of a message under all keys."""
        return [_authentication_code(key, purpose, message) for key in self._keys]

    def is_authentic(self, purpose: str, message: bytes, code: bytes) -> bool:
        """Return whether these are the first bytes of the message's code, under any of the keys."""
        return any(
            hmac.compare_digest(each[: len(code)], code)
            for each in self.authentication_codes(purpose, message)
        )

    def verify(self, kind: TokenKind, encoded_token: str, now: datetime) -> TokenClaims:
        """Return the claims of the token, which may have been pasted. Raises: BadTokenError."""
        encoded_token = strip_blanks(encoded_token)
        if len(encoded_token) > MAX_TOKEN_LENGTH or not _TOKEN_PATTERN.fullmatch(encoded_token):
            raise BadTokenError(INVALID_MESSAGE)
        message, _, signature = encoded_token.rpartition(".")
        try:
            signed = _decode_part(signature)
            if any(hmac.compare_digest(_signature(key, message), signed) for key in self._keys):
                header, claims = (json.loads(_decode_part(part)) for part in message.split("."))
                return _to_claims(kind, header, claims, now)
        # Who has a key can sign what no datetime can hold, and deep nesting.
        except (LookupError, TypeError, ValueError, OverflowError, RecursionError):
            pass
        raise BadTokenError(INVALID_MESSAGE)


def _authentication_code(key: bytes, purpose: str, message: bytes) -> bytes:
    # No JWT has a zero byte, so that a code is never the signature of a token.
    return hmac.digest(key, purpose.encode() + b"\0" + message, hashlib.sha256)


def _signature(key: bytes, message: str) -> bytes:
    return hmac.digest(key, message.encode(), hashlib.sha256)


def _encode_part(part: bytes) -> str:
    return urlsafe_b64encode(part).decode().rstrip("=")


def _decode_part(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


# That of each token of this server, so that none chooses its algorithm or key.
_HEADER_FIELDS = {"alg": ALGORITHM, "typ": "JWT"}
_HEADER = _encode_part(json.dumps(_HEADER_FIELDS, separators=(",", ":")).encode())


def _to_claims(
    kind: TokenKind, header: dict[str, Any], claims: dict[str, Any], now: datetime
) -> TokenClaims:
    """Return the claims of a token with a valid signature.

    Raises:
        BadTokenError: it has expired.
        LookupError, TypeError, ValueError, OverflowError: it is not valid.
    """
    if header != _HEADER_FIELDS or (claims["iss"], claims["aud"]) != (ISSUER, AUDIENCE):
        raise ValueError(header)
    expires_at = _to_time(claims["exp"])
    if max(_to_time(claims["iat"]), _to_time(claims.get("nbf", 0))) > now + ISSUED_AT_LEEWAY:
        raise ValueError(claims)
    if expires_at <= now:
        raise BadTokenError(EXPIRED_MESSAGE)
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
        raise ValueError(claims)
    return TokenClaims(UserId(user_id), session_id, token_id, expires_at, export)


def _to_time(seconds: object) -> datetime:
    if not isinstance(seconds, int | float):
        raise TypeError(seconds)
    return datetime.fromtimestamp(seconds, UTC)


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token; a random token needs no salt and no slow hash."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


# Codes that set a password, short enough for a child to type from a letter: 7KQ4-M9XT-2HFW. The
# digits are those of Crockford's base32: no two look alike, and a reader may take O for 0, and I or
# L for 1. A code has 60 random bits, which nobody guesses over the network. From a plain hash,
# somebody who reads the database could find it within a day (docs/decisions/0075).
CODE_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
CODE_LENGTH, GROUP_LENGTH = 12, 4
CODE_PURPOSE = "invitation code"
# Of a code as somebody types it, with blanks and dashes.
MAX_TYPED_CODE = 40
_READ_AS = str.maketrans("OIL", "011")


def new_code(tokens: TokenSigner) -> tuple[str, str]:
    """Return a code and what is stored of it."""
    digits = "".join(secrets.choice(CODE_DIGITS) for _ in range(CODE_LENGTH))
    groups = (digits[at : at + GROUP_LENGTH] for at in range(0, CODE_LENGTH, GROUP_LENGTH))
    return "-".join(groups), tokens.authentication_code(CODE_PURPOSE, digits.encode()).hex()


def stored_hashes(tokens: TokenSigner, token: str) -> list[str]:
    """Return what is stored of a token that somebody typed or pasted: for a code, one by key."""
    if code := _parse_code(token):
        return [each.hex() for each in tokens.authentication_codes(CODE_PURPOSE, code.encode())]
    return [hash_token(strip_blanks(token))]


def _parse_code(typed: str) -> str | None:
    """Return the digits of a code, or None."""
    if len(typed) > MAX_TYPED_CODE:
        return None
    letters = filter(str.isalnum, unicodedata.normalize("NFKC", typed).upper())
    code = "".join(letters).translate(_READ_AS)
    return code if len(code) == CODE_LENGTH and set(code) <= set(CODE_DIGITS) else None


UNSUBSCRIBE_PURPOSE = "unsubscribe"
# As long as an id in hexadecimal digits; 128 bits.
PROOF_DIGITS = 32


def unsubscribe_token(tokens: TokenSigner, user_id: UserId, topic: MailTopic) -> str:
    """Return the token of a link with which a user refuses mails about a topic (RFC 8058).

    It has no end: it is valid as long as its key is configured, and opens nothing else.
    """
    proof = tokens.authentication_code(
        UNSUBSCRIBE_PURPOSE, f"{user_id}.{topic.value}".encode()
    ).hex()
    return f"{user_id}.{topic.value}.{proof[:PROOF_DIGITS]}"


def parse_unsubscribe_token(tokens: TokenSigner, token: str) -> tuple[UserId, MailTopic] | None:
    """Return the user and the topic of a token; None if this server did not issue it."""
    message, _, proof = token.rpartition(".")
    user_id, _, topic = message.partition(".")
    try:
        code = bytes.fromhex(proof)
        found = UserId(user_id), MailTopic(topic)
    except ValueError:
        return None
    is_authentic = len(proof) == PROOF_DIGITS and tokens.is_authentic(
        UNSUBSCRIBE_PURPOSE, message.encode(), code
    )
    return found if is_authentic else None
