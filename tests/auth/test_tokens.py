"""Signed tokens: valid ones round-trip, keys rotate, and forged or malformed ones are rejected."""

import base64
import hmac
import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import httpx
import pytest

from slotlock.auth.sessions import open_session
from slotlock.auth.tokens import (
    AUDIENCE,
    CODE_DIGITS,
    ISSUED_AT_LEEWAY,
    ISSUER,
    MAX_TOKEN_LENGTH,
    BadTokenError,
    TokenClaims,
    TokenSigner,
    hash_token,
    new_code,
    stored_hashes,
)
from slotlock.domain.users.user import UserId
from tests.support.apps.processes import SECRET, AppProcess
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.stores.users import auth_for_database, insert_user

OLD_SECRET = "a key that used to sign, of more than 32 bytes"
NOW = datetime.now(UTC).replace(microsecond=0)
TOKEN = TokenClaims(UserId("0" * 24), "s" * 22, "i" * 22, NOW + timedelta(minutes=15))
SIGNER = TokenSigner([SECRET])
HEADER = {"alg": "HS256", "typ": "JWT"}
PUBLIC_KEY = (
    "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK\n-----END PUBLIC KEY-----"
)
ODD_VALUES: list[Any] = [
    None, True, -1, 1e308, 10**30, 10**400, float("inf"), float("nan"), [], {}, {"$gt": ""},
    "", "\x00", "\ud800", "\u00e9", "0" * 23 + "g", "\u0660" * 24, "x" * 900, "0" * 24 + "\n",
    "s" * 23,
]  # fmt: skip


def encode_part(value: object) -> str:
    """Encode one part of a token: bytes and text as they are, other values as JSON."""
    raw = value if isinstance(value, bytes | str) else json.dumps(value)
    data = raw if isinstance(raw, bytes) else raw.encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(header: object, claims: object, key: str = SECRET, digest: str = "sha256") -> str:
    """Return a token with a valid signature over any header and claims."""
    text = f"{encode_part(header)}.{encode_part(claims)}"
    return f"{text}.{encode_part(hmac.digest(key.encode(), text.encode(), digest))}"


def valid_claims() -> Json:
    """Return the claims of a valid access token whose session does not exist."""
    now = int(time.time())
    times = {"exp": now + 900, "iat": now}
    ids = {"sub": "0" * 24, "jti": "i" * 22, "sid": "s" * 22}
    return {"iss": ISSUER, "aud": AUDIENCE, "typ": "access", **times, **ids}


def is_rejected(encoded_token: str) -> bool:
    try:
        TokenSigner([SECRET]).verify("access", encoded_token, datetime.now(UTC))
    except BadTokenError:
        return True
    return False


@pytest.mark.parametrize("key", [SECRET, "\u00e9" * 16])  # the second has 32 bytes
def test_a_signed_token_returns_its_claims(key: str) -> None:
    signer = TokenSigner([key])
    assert signer.verify("access", signer.sign("access", TOKEN, NOW), NOW) == TOKEN
    assert signer.verify("refresh", signer.sign("refresh", TOKEN, NOW), NOW) == TOKEN


def test_the_hand_made_tokens_of_these_tests_are_valid_without_changes() -> None:
    assert not is_rejected(sign(HEADER, valid_claims()))


def test_every_claim_is_required() -> None:
    for claim in valid_claims():
        claims = {name: value for name, value in valid_claims().items() if name != claim}
        with pytest.raises(BadTokenError, match="not valid"):
            TokenSigner([SECRET]).verify("access", sign(HEADER, claims), NOW)


def test_every_claim_is_checked() -> None:
    for claim, value in (
        ("iss", "somebody"), ("aud", "others"), ("aud", ["others"]), ("typ", "refresh"),
        ("typ", "ACCESS"), ("typ", 1), ("sub", 7), ("jti", 7), ("sid", 7), ("exp", "soon"),
        ("iat", "before"),
    ):  # fmt: skip
        assert is_rejected(sign(HEADER, {**valid_claims(), claim: value})), (claim, value)


@pytest.mark.parametrize("claim", ["iat", "nbf"])
def test_a_token_from_the_future_is_rejected(claim: str) -> None:
    assert is_rejected(sign(HEADER, {**valid_claims(), claim: int(time.time()) + 3600}))


def test_an_odd_claim_is_rejected_although_the_signature_is_valid() -> None:
    for claim, value in product(("iss", "aud", "typ", "sub", "exp", "jti", "sid"), ODD_VALUES):
        assert is_rejected(sign(HEADER, {**valid_claims(), claim: value})), (claim, value)


@pytest.mark.parametrize("ahead_s", [-3600, 0, 3600])
def test_a_token_lives_by_the_time_given_and_not_by_the_clock_of_the_host(ahead_s: int) -> None:
    signer, now = TokenSigner([SECRET]), NOW + timedelta(seconds=ahead_s)
    claims = replace(TOKEN, expires_at=now + timedelta(minutes=15))
    encoded_token = signer.sign("access", claims, now)
    assert signer.verify("access", encoded_token, now) == claims
    assert signer.verify("access", encoded_token, now - ISSUED_AT_LEEWAY) == claims
    with pytest.raises(BadTokenError, match="not valid"):
        signer.verify("access", encoded_token, now - ISSUED_AT_LEEWAY - timedelta(seconds=1))
    with pytest.raises(BadTokenError, match="expired"):
        signer.verify("access", encoded_token, claims.expires_at)


def test_a_token_of_the_other_kind_is_rejected() -> None:
    signer = TokenSigner([SECRET])
    with pytest.raises(BadTokenError):
        signer.verify("refresh", signer.sign("access", TOKEN, NOW), NOW)
    with pytest.raises(BadTokenError):
        signer.verify("access", signer.sign("refresh", TOKEN, NOW), NOW)


@pytest.mark.parametrize("key", [SECRET, OLD_SECRET])
def test_an_expired_token_is_rejected_as_expired(key: str) -> None:
    expired = sign(HEADER, {**valid_claims(), "exp": int(time.time()) - 1}, key)
    with pytest.raises(BadTokenError, match="expired"):
        TokenSigner([SECRET, OLD_SECRET]).verify("access", expired, datetime.now(UTC))


def test_an_unsigned_or_altered_token_is_rejected() -> None:
    header, claims, signature = sign(HEADER, valid_claims()).split(".")
    other_claims = encode_part({**valid_claims(), "sub": "1" * 24})
    for encoded_token in (
        f"{header}.{claims}.",
        f"{header}.{claims}",
        f"{header}.{other_claims}.{signature}",
        f"{header}.{claims}.{signature[::-1]}",
        f"{header}.{claims}.{signature}.x",
        f"{other_claims}.{claims}.{signature}",
        "",
        "..",
        "\u00e9.\u00e9.\u00e9",
    ):
        assert is_rejected(encoded_token)


@pytest.mark.parametrize("claims", ["null", "[]", "7", '"x"', "", "{", "[" * 1_000, b"\xff"])
def test_claims_that_are_not_an_object_are_rejected(claims: object) -> None:
    assert is_rejected(sign(HEADER, claims))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, {}, ["HS256"], 7])
def test_a_token_without_an_algorithm_is_rejected(algorithm: object) -> None:
    header = {**HEADER, "alg": algorithm}
    assert is_rejected(sign(header, valid_claims()))
    assert is_rejected(f"{encode_part(header)}.{encode_part(valid_claims())}.")


def test_another_algorithm_or_key_is_rejected() -> None:
    for algorithm, key, digest in (
        ("HS512", SECRET, "sha512"), ("HS384", SECRET, "sha384"), ("HS256", SECRET, "sha512"),
        ("RS256", SECRET, "sha256"), ("ES256", SECRET, "sha256"), ("hs256", SECRET, "sha256"),
        ("HS256", PUBLIC_KEY, "sha256"), ("HS256", "", "sha256"), ("RS256", PUBLIC_KEY, "sha256"),
        ("HS256", OLD_SECRET, "sha256"),
    ):  # fmt: skip
        encoded_token = sign({**HEADER, "alg": algorithm}, valid_claims(), key, digest)
        assert is_rejected(encoded_token), (algorithm, key, digest)


def test_the_header_of_a_token_cannot_choose_the_key() -> None:
    for fields in (
        {"kid": "../../../../dev/null"}, {"kid": "' UNION SELECT 'x"}, {"kid": "/etc/hostname"},
        {"jwk": {"kty": "oct", "k": ""}}, {"jku": "https://elsewhere.example/keys"},
        {"x5u": "https://elsewhere.example/x.pem"}, {"x5c": ["MIIB"]},
    ):  # fmt: skip
        for key in ("", "\x00", "a key that the author of the header has"):
            assert is_rejected(sign({**HEADER, **fields}, valid_claims(), key)), (fields, key)


def test_unsupported_header_fields_are_rejected() -> None:
    unsupported: tuple[Json, ...] = ({"kid": {}}, {"b64": False}, {"crit": ["exp"]}, {"crit": []})
    for fields in unsupported:
        assert is_rejected(sign({**HEADER, **fields}, valid_claims())), fields


def test_a_token_that_is_too_long_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    too_long = sign(HEADER, {**valid_claims(), "more": "x" * MAX_TOKEN_LENGTH})
    monkeypatch.setattr("slotlock.auth.tokens._decode_part", None)
    assert is_rejected(too_long)
    assert is_rejected("\u00e9" * 20)
    assert is_rejected("\ud800")


def test_a_new_first_key_signs_while_the_old_key_is_still_accepted() -> None:
    before, after = TokenSigner([OLD_SECRET]), TokenSigner([SECRET])
    during = TokenSigner([SECRET, OLD_SECRET])
    old_token = before.sign("access", TOKEN, NOW)
    new_token = during.sign("access", TOKEN, NOW)
    assert during.verify("access", old_token, NOW) == TOKEN
    assert during.verify("access", new_token, NOW) == TOKEN
    assert after.verify("access", new_token, NOW) == TOKEN
    for signer, encoded_token in ((after, old_token), (before, new_token)):
        with pytest.raises(BadTokenError):
            signer.verify("access", encoded_token, NOW)


@pytest.mark.parametrize("keys", [[], [""], ["k" * 31], ["k" * 32, "k" * 31], ["\u00e9" * 15]])
def test_a_signer_needs_keys_of_at_least_32_bytes(keys: list[str]) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        TokenSigner(keys)


async def test_an_odd_token_of_an_open_session_is_unauthenticated_and_logs_no_error(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        session = await open_session(auth, await insert_user(auth))
    token = TokenSigner([SECRET]).verify("access", session.access_token, datetime.now(UTC))
    claims = {**valid_claims(), "sub": token.user_id, "sid": token.session_id}
    errors_before = app.log.count(" ERROR ")
    client = GraphQLTestClient(http, app.url, sign(HEADER, claims))
    assert await client.execute("{ me { id } }") is not None
    for claim in ("sub", "sid", "jti", "exp"):
        for value in ODD_VALUES:
            client.token = sign(HEADER, {**claims, claim: value})
            assert await client.error_code("{ me { id } }") == "UNAUTHENTICATED"
    assert app.log.count(" ERROR ") == errors_before


def test_a_code_has_sixty_random_bits_in_groups_that_can_be_read_aloud() -> None:
    codes = {new_code(SIGNER)[0] for _ in range(1000)}
    assert len(codes) == 1000
    assert all(
        re.fullmatch(rf"(?:[{CODE_DIGITS}]{{4}}-){{2}}[{CODE_DIGITS}]{{4}}", each) for each in codes
    )
    assert len(CODE_DIGITS) == 32
    assert not set(CODE_DIGITS) & set("ILOU")
    assert set("".join(codes)) == {*CODE_DIGITS, "-"}


@pytest.mark.parametrize(
    "typed",
    ["7K0A-M1XT-1HFW", "7k0am1xt1hfw", " 7K0A M1XT 1HFW\n", "7KOA-MIXT-LHFW",
     "7koa\u2013mixt\u2013lhfw", "\uff17\uff2b\uff10\uff21-M1XT-1HFW"],
)  # fmt: skip
def test_a_code_is_found_however_it_is_typed(typed: str) -> None:
    assert stored_hashes(SIGNER, typed) == stored_hashes(SIGNER, "7K0A-M1XT-1HFW")


@pytest.mark.parametrize("typed", ["7K0A-M1XT-1HF", "7K0A-M1XT-1HFWW", "7KUA-M1XT-1HFW", "é" * 12])
def test_what_is_no_code_is_not_taken_for_another_one(typed: str) -> None:
    assert stored_hashes(SIGNER, typed) == [hash_token(typed)]


def test_nobody_finds_a_code_from_what_is_stored_without_the_key() -> None:
    code, stored = new_code(SIGNER)
    assert stored not in (hash_token(code), hash_token(code.replace("-", "")))
    assert stored_hashes(SIGNER, code) == [stored]
    assert stored not in stored_hashes(TokenSigner([OLD_SECRET]), code)


def test_a_code_outlives_a_rotation_of_the_key() -> None:
    code, stored = new_code(SIGNER)
    assert stored in stored_hashes(TokenSigner([OLD_SECRET, SECRET]), code)
