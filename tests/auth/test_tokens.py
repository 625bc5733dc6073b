"""A token is believed only when every part of it is ours."""

from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from slotlock.auth.tokens import AUDIENCE, ISSUER, BadTokenError, TokenClaims, TokenSigner
from slotlock.domain.users.user import UserId

KEY = "the key that signs, of more than 32 bytes"
OLD = "a key that used to sign, of more than 32 bytes"
NOW = datetime.now(UTC).replace(microsecond=0)
TOKEN = TokenClaims(UserId("0" * 24), "s" * 22, "i" * 22, NOW + timedelta(minutes=15))
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "aud": AUDIENCE,
    "sub": TOKEN.user_id,
    "exp": TOKEN.expires_at,
    "iat": NOW,
    "jti": TOKEN.id,
    "typ": "access",
    "sid": TOKEN.session_id,
}


@pytest.fixture
def tokens() -> TokenSigner:
    return TokenSigner([KEY])


def encoded(key: str = KEY, algorithm: str = "HS256", **changed: Any) -> str:
    return jwt.encode(CLAIMS | changed, key, algorithm)


def test_a_token_says_what_it_was_signed_with(tokens: TokenSigner) -> None:
    assert tokens.verify("access", tokens.sign("access", TOKEN, NOW)) == TOKEN
    assert tokens.verify("refresh", tokens.sign("refresh", TOKEN, NOW)) == TOKEN
    assert tokens.verify("access", encoded()) == TOKEN


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_is_required(tokens: TokenSigner, claim: str) -> None:
    claims = {name: value for name, value in CLAIMS.items() if name != claim}
    with pytest.raises(BadTokenError, match="not valid"):
        tokens.verify("access", jwt.encode(claims, KEY, "HS256"))


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("iss", "somebody"), ("iss", ""), ("aud", "others"), ("aud", ["others"]),
        ("typ", "refresh"), ("typ", "ACCESS"), ("typ", 1), ("sub", 7), ("jti", 7), ("sid", 7),
        ("sid", {}), ("exp", "soon"), ("exp", True), ("iat", "before"),
        ("iat", NOW + timedelta(hours=1)), ("nbf", NOW + timedelta(hours=1)),
    ],
)  # fmt: skip
def test_every_claim_is_checked(tokens: TokenSigner, claim: str, value: object) -> None:
    with pytest.raises(BadTokenError):
        tokens.verify("access", jwt.encode(CLAIMS | {claim: value}, KEY, "HS256"))


def test_a_token_of_the_other_kind_is_refused(tokens: TokenSigner) -> None:
    with pytest.raises(BadTokenError):
        tokens.verify("refresh", tokens.sign("access", TOKEN, NOW))
    with pytest.raises(BadTokenError):
        tokens.verify("access", tokens.sign("refresh", TOKEN, NOW))


def test_an_expired_token_is_told_from_others(tokens: TokenSigner) -> None:
    with pytest.raises(BadTokenError, match="expired"):
        tokens.verify("access", encoded(exp=NOW - timedelta(seconds=1)))


@pytest.mark.parametrize("algorithm", ["none", "HS384", "HS512"])
def test_only_the_pinned_algorithm_is_taken(tokens: TokenSigner, algorithm: str) -> None:
    key = "" if algorithm == "none" else KEY.ljust(64, "-")
    with pytest.raises(BadTokenError):
        TokenSigner([key or KEY]).verify("access", encoded(key, algorithm))


def test_an_unsigned_or_altered_token_is_refused(tokens: TokenSigner) -> None:
    header, claims, signature = encoded().split(".")
    other = encoded(sub="1" * 24).split(".")[1]
    for text in (
        f"{header}.{claims}.",
        f"{header}.{claims}",
        f"{header}.{other}.{signature}",
        f"{header}.{claims}.{signature[::-1]}",
        f"{encoded()}.x",
        f"{other}.{claims}.{signature}",
        "",
        "..",
        "\u00e9.\u00e9.\u00e9",
    ):
        with pytest.raises(BadTokenError):
            tokens.verify("access", text)


def test_a_token_of_another_key_is_refused(tokens: TokenSigner) -> None:
    with pytest.raises(BadTokenError):
        tokens.verify("access", encoded(OLD))


def test_a_new_first_key_signs_while_the_old_one_is_still_accepted() -> None:
    before, during, after = TokenSigner([OLD]), TokenSigner([KEY, OLD]), TokenSigner([KEY])
    old = before.sign("access", TOKEN, NOW)
    new = during.sign("access", TOKEN, NOW)
    assert during.verify("access", old) == during.verify("access", new) == TOKEN
    assert after.verify("access", new) == TOKEN
    for tokens, text in ((after, old), (before, new)):
        with pytest.raises(BadTokenError):
            tokens.verify("access", text)


def test_an_expired_token_of_an_old_key_is_expired() -> None:
    with pytest.raises(BadTokenError, match="expired"):
        TokenSigner([KEY, OLD]).verify("access", encoded(OLD, exp=NOW - timedelta(seconds=1)))


@pytest.mark.parametrize("keys", [[], [""], ["k" * 31], ["k" * 32, "k" * 31], ["\u00e9" * 15]])
def test_no_key_or_a_short_one_is_refused(keys: list[str]) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        TokenSigner(keys)


def test_a_key_is_long_enough_by_its_bytes() -> None:
    tokens = TokenSigner(["\u00e9" * 16])
    assert tokens.verify("access", tokens.sign("access", TOKEN, NOW)) == TOKEN
