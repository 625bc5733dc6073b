"""Tokens made to be taken for ours: told from them whatever they hold, and no error of ours."""

import base64
import hmac
import json
import time
from typing import Any

import httpx
import pytest

from slotlock.auth.sessions import open_session
from slotlock.auth.tokens import MAX_TOKEN_LENGTH, BadTokenError, TokenSigner
from tests.support.apps.processes import SECRET, AppProcess
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.stores.users import auth_for_database, insert_user

ODD: list[Any] = [
    None, True, -1, 1e308, 10**30, 10**400, float("inf"), float("nan"), [], {}, {"$gt": ""},
    "", "\x00", "\ud800", "\u00e9", "0" * 23 + "g", "\u0660" * 24, "x" * 900, "0" * 24 + "\n",
    "s" * 23,
]  # fmt: skip
HEADER = {"alg": "HS256", "typ": "JWT"}
PUBLIC_KEY = (
    "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK\n-----END PUBLIC KEY-----"
)


def part(value: object) -> str:
    """One part of a token: of bytes and text as they are, of anything else its JSON."""
    raw = value if isinstance(value, bytes | str) else json.dumps(value)
    data = raw if isinstance(raw, bytes) else raw.encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(header: object, claims: object, key: str = SECRET, how: str = "sha256") -> str:
    """A token with a good signature over whatever it is to hold."""
    text = f"{part(header)}.{part(claims)}"
    return f"{text}.{part(hmac.digest(key.encode(), text.encode(), how))}"


def good_claims() -> Json:
    """What a token of ours holds, but for a session that is open."""
    now = int(time.time())
    times = {"exp": now + 900, "iat": now}
    ids = {"sub": "0" * 24, "jti": "i" * 22, "sid": "s" * 22}
    return {"iss": "slotlock", "aud": "slotlock", "typ": "access", **times, **ids}


def is_refused(text: str) -> bool:
    try:
        TokenSigner([SECRET]).verify("access", text)
    except BadTokenError:
        return True
    return False


def test_the_tokens_of_these_tests_are_good_but_for_what_is_wrong_with_them() -> None:
    assert not is_refused(signed(HEADER, good_claims()))


@pytest.mark.parametrize("claim", ["iss", "aud", "typ", "sub", "exp", "jti", "sid"])
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: ascii(odd)[:20])
def test_an_odd_claim_is_refused_though_our_own_key_signed_it(claim: str, odd: object) -> None:
    assert is_refused(signed(HEADER, {**good_claims(), claim: odd}))


@pytest.mark.parametrize("claims", ["null", "[]", "7", '"x"', "", "{", "[" * 1_000, b"\xff"])
def test_claims_that_are_no_object_are_refused(claims: object) -> None:
    assert is_refused(signed(HEADER, claims))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, {}, ["HS256"], 7])
def test_no_algorithm_is_not_taken_for_one(algorithm: object) -> None:
    header = {**HEADER, "alg": algorithm}
    assert is_refused(signed(header, good_claims()))
    assert is_refused(f"{part(header)}.{part(good_claims())}.")


@pytest.mark.parametrize(
    ("algorithm", "key", "how"),
    [
        ("HS512", SECRET, "sha512"), ("HS384", SECRET, "sha384"), ("HS256", SECRET, "sha512"),
        ("RS256", SECRET, "sha256"), ("ES256", SECRET, "sha256"), ("hs256", SECRET, "sha256"),
        ("HS256", PUBLIC_KEY, "sha256"), ("HS256", "", "sha256"), ("RS256", PUBLIC_KEY, "sha256"),
    ],
)  # fmt: skip
def test_another_algorithm_or_key_is_refused(algorithm: str, key: str, how: str) -> None:
    assert is_refused(signed({**HEADER, "alg": algorithm}, good_claims(), key, how))


@pytest.mark.parametrize(
    "more",
    [
        {"kid": "../../../../dev/null"}, {"kid": "' UNION SELECT 'x"}, {"kid": "/etc/hostname"},
        {"jwk": {"kty": "oct", "k": ""}}, {"jku": "https://elsewhere.example/keys"},
        {"x5u": "https://elsewhere.example/x.pem"}, {"x5c": ["MIIB"]},
    ],
)  # fmt: skip
def test_a_header_never_says_which_key_is_good(more: Json) -> None:
    for key in ("", "\x00", "a key that whoever wrote the header has"):
        assert is_refused(signed({**HEADER, **more}, good_claims(), key))


@pytest.mark.parametrize("more", [{"kid": {}}, {"b64": False}, {"crit": ["exp"]}, {"crit": []}])
def test_a_header_that_asks_for_more_than_we_know_is_refused(more: Json) -> None:
    assert is_refused(signed({**HEADER, **more}, good_claims()))


def test_a_token_that_is_too_long_is_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    long = signed(HEADER, {**good_claims(), "more": "x" * MAX_TOKEN_LENGTH})
    monkeypatch.setattr("slotlock.auth.tokens.jwt", None)
    assert is_refused(long)
    assert is_refused("\u00e9" * 20)
    assert is_refused("\ud800")


async def test_an_odd_token_of_an_open_session_is_unauthenticated_and_logs_no_error(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        session = await open_session(auth, await insert_user(auth))
    token = TokenSigner([SECRET]).verify("access", session.access_token)
    good = {**good_claims(), "sub": token.user_id, "sid": token.session_id}
    before = app.log.count(" ERROR ")
    client = GraphQLTestClient(http, app.url, signed(HEADER, good))
    assert await client.execute("{ me { id } }") is not None
    for claim in ("sub", "sid", "jti", "exp"):
        for odd in ODD:
            client.token = signed(HEADER, {**good, claim: odd})
            assert await client.error_code("{ me { id } }") == "UNAUTHENTICATED"
    assert app.log.count(" ERROR ") == before
