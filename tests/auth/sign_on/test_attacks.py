"""Known attacks on sign-ins fail, and each succeeds without its guard."""

import hmac
import json
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from jwt.algorithms import RSAAlgorithm

from slotlock.auth.providers.connections import (
    WELL_KNOWN,
    ProviderConnection,
    SignOn,
    check_metadata,
    open_sign_on,
)
from slotlock.auth.providers.provider import Provider
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.sign_on import id_tokens, sign_in
from slotlock.auth.sign_on.back_channel import end_provider_session
from slotlock.auth.sign_on.claims import read_claims
from slotlock.auth.sign_on.sign_in import challenge_of, start_sign_in
from slotlock.auth.sign_on.sign_in_outcomes import (
    ProviderUnavailable,
    SignInFailed,
    SignInStarted,
)
from slotlock.auth.tokens import hash_token
from slotlock.domain.shared.validation import InvalidInput
from slotlock.infrastructure.mongo.users.identities import IdentityRepository
from slotlock.infrastructure.provider_client import (
    ProviderUnavailableError,
    may_be_local,
    open_provider_client,
)
from tests.support.sign_on.lying_provider import (
    CLIENT_ID,
    LyingProvider,
    lying_provider,
    public_pem,
    rsa_key,
)
from tests.support.sign_on.scene import BOARD, SignOnScene

Patch = pytest.MonkeyPatch
CHALLENGE = "c" * 43
WITH_AND_WITHOUT_GUARD = pytest.mark.parametrize("is_guarded", [True, False])


async def no_check(*_: object) -> None:
    """Stand for a guard that waits."""


def trust_each_signature(monkeypatch: Patch) -> None:
    """Turn off the checks of the algorithm and the signature."""
    decode = jwt.decode

    def unverified(token: str, *_: object, **options: Any) -> Any:
        options["options"] = {**options["options"], "verify_signature": False}
        return decode(token, **options)

    async def any_key(*_: object) -> Any:
        return {"kty": "oct", "k": "AAAA"}

    monkeypatch.setattr(jwt, "decode", unverified)
    monkeypatch.setattr(jwt, "PyJWK", lambda *_: None)
    monkeypatch.setattr(id_tokens, "_find_key", any_key)
    require = id_tokens._require
    monkeypatch.setattr(
        id_tokens, "_require", lambda ok, why: require(ok or "algorithm" in why, why)
    )


def expected(is_guarded: bool) -> type:
    return SignInFailed if is_guarded else SignedInSession


@WITH_AND_WITHOUT_GUARD
async def test_the_browser_of_a_victim_cannot_finish_the_sign_in_of_an_attacker(
    scene: SignOnScene, monkeypatch: Patch, is_guarded: bool
) -> None:
    state, code = await scene.start()  # the attacker sends both to the victim (login CSRF)
    if not is_guarded:
        monkeypatch.setattr(sign_in, "_check_client", lambda *_: None)
    outcome = await scene.finish(state, code, verifier=secrets.token_urlsafe(32))
    assert isinstance(outcome, expected(is_guarded))


@WITH_AND_WITHOUT_GUARD
async def test_a_code_of_one_provider_never_reaches_another_one(
    scene: SignOnScene, monkeypatch: Patch, is_guarded: bool
) -> None:
    if not is_guarded:
        monkeypatch.setattr(sign_in, "_check_issuer", no_check)
    with lying_provider() as attacker:
        attacker_settings = attacker.settings(id="attacker")
        async with open_sign_on([scene.provider.settings(), attacker_settings], BOARD) as sign_on:
            mixed = replace(scene, auth=replace(scene.auth, sign_on=sign_on))
            started = await start_sign_in(
                mixed.auth, "attacker", sign_in.challenge_of(scene.verifier)
            )
            assert isinstance(started, SignInStarted)
            # The attacker sends the user on to the honest provider, with the state.
            state, code = scene.provider.code_for(started.url)
            await mixed.finish(state, code, issuer=scene.provider.issuer)
        assert attacker.count("/token") == (0 if is_guarded else 1)


async def test_a_provider_that_names_itself_in_each_response_is_never_nameless(
    scene: SignOnScene,
) -> None:
    scene.provider.metadata = {"authorization_response_iss_parameter_supported": True}
    assert isinstance(await scene.sign_in(), SignInFailed)
    named = await scene.finish(*await scene.start(), issuer=scene.provider.issuer)
    assert isinstance(named, SignedInSession)


@WITH_AND_WITHOUT_GUARD
async def test_a_state_works_once(scene: SignOnScene, monkeypatch: Patch, is_guarded: bool) -> None:
    scene.provider.replays = True
    taken = await scene.start()
    if not is_guarded:
        pending = await scene.auth.repositories.identities.take_pending(
            hash_token(taken[0]), scene.auth.now()
        )

        async def find_pending(*_: object) -> object:
            return pending

        monkeypatch.setattr(IdentityRepository, "take_pending", find_pending)
    assert isinstance(await scene.finish(*taken), SignedInSession)
    assert isinstance(await scene.finish(*taken), expected(is_guarded))


async def test_a_state_ends_after_ten_minutes(scene: SignOnScene) -> None:
    started, late = await scene.start(), scene.auth.now() + sign_in.PENDING_TTL
    scene.auth = replace(scene.auth, now=lambda: late)
    assert isinstance(await scene.finish(*started), SignInFailed)
    assert scene.provider.count("/token") == 0


@WITH_AND_WITHOUT_GUARD
async def test_a_stolen_code_does_not_work_in_another_sign_in(
    scene: SignOnScene, is_guarded: bool
) -> None:
    _, stolen = await scene.start()
    state, _ = await scene.start()
    scene.provider.ignores_verifier = not is_guarded
    if not is_guarded:
        scene.provider.claims["nonce"] = nonce_of(scene.provider)
    outcome = await scene.finish(state, stolen)
    assert isinstance(outcome, expected(is_guarded))


def nonce_of(provider: LyingProvider) -> str:
    """Return the nonce of the last sign-in, which only its client knows."""
    (*_, last) = provider._codes.values()
    return str(last["nonce"])


@WITH_AND_WITHOUT_GUARD
async def test_a_token_of_another_sign_in_has_the_wrong_nonce(
    scene: SignOnScene, monkeypatch: Patch, is_guarded: bool
) -> None:
    scene.provider.claims["nonce"] = "another"
    if not is_guarded:
        monkeypatch.setattr(hmac, "compare_digest", lambda *_: True)
    assert isinstance(await scene.sign_in(), expected(is_guarded))


def with_hs256(key: bytes) -> Callable[[dict[str, Any]], str]:
    """Sign as one who knows only public keys."""

    def sign(claims: dict[str, Any]) -> str:
        header = {"alg": "HS256", "typ": "JWT", "kid": "first"}
        message = ".".join(
            jwt.utils.base64url_encode(json.dumps(part).encode()).decode()
            for part in (header, claims)
        )
        signature = hmac.digest(key, message.encode(), "sha256")
        return f"{message}.{jwt.utils.base64url_encode(signature).decode()}"

    return sign


FORGERIES: dict[str, Callable[[dict[str, Any]], str]] = {
    "another key under the id of the right one": lambda claims: jwt.encode(
        claims, rsa_key("forged"), "RS256", headers={"kid": "first"}
    ),
    "another key under its own id": lambda claims: jwt.encode(
        claims, rsa_key("forged"), "RS256", headers={"kid": "forged"}
    ),
    "a key in the header": lambda claims: jwt.encode(
        claims, rsa_key("forged"), "RS256", headers={"jku": "http://127.0.0.1:1/keys"}
    ),
    "no signature": lambda claims: jwt.encode(claims, "", "none"),
    "the public key as the secret of HS256": with_hs256(public_pem("first")),
    "another algorithm of the right key": lambda claims: jwt.encode(
        claims, rsa_key("first"), "RS512", headers={"kid": "first"}
    ),
}


@WITH_AND_WITHOUT_GUARD
@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forged_token_signs_nobody_in(
    scene: SignOnScene, monkeypatch: Patch, forgery: str, is_guarded: bool
) -> None:
    scene.provider.sign = FORGERIES[forgery]
    if not is_guarded:
        trust_each_signature(monkeypatch)
    assert isinstance(await scene.sign_in(), expected(is_guarded))


@WITH_AND_WITHOUT_GUARD
async def test_a_key_that_the_provider_has_withdrawn_signs_nothing(
    scene: SignOnScene, is_guarded: bool
) -> None:
    provider = scene.provider
    assert isinstance(await scene.sign_in(), SignedInSession)
    provider.published = ["second"]
    if is_guarded:
        assert isinstance(await scene.sign_in(), SignedInSession)
    provider.sign = lambda claims: jwt.encode(
        claims, rsa_key("first"), "RS256", headers={"kid": "first"}
    )
    assert isinstance(await scene.sign_in(), expected(is_guarded))


def connection_of(scene: SignOnScene) -> ProviderConnection:
    """Return the connection of the server to its provider."""
    assert scene.auth.sign_on is not None
    connection = scene.auth.sign_on.find("school")
    assert connection is not None
    return connection


@WITH_AND_WITHOUT_GUARD
async def test_logout_tokens_with_unknown_keys_delay_no_new_key(
    scene: SignOnScene, monkeypatch: Patch, is_guarded: bool
) -> None:
    """If they have no limit of their own, they do: the control of this test."""
    provider, keys = scene.provider, ProviderConnection.keys

    async def shared(connection: ProviderConnection, key_id: str | None = None, *_: object) -> Any:
        return await keys(connection, key_id)

    if not is_guarded:
        monkeypatch.setattr(ProviderConnection, "keys", shared)
    assert isinstance(await scene.sign_in(), SignedInSession)
    connection = connection_of(scene)
    for _ in range(5):
        token = jwt.encode({}, rsa_key("forged"), "RS256", headers={"kid": secrets.token_hex(4)})
        assert not await end_provider_session(scene.auth, connection, token)
    assert provider.count("/keys") == 2
    provider.published = ["second"]
    assert isinstance(await scene.sign_in(), expected(not is_guarded))


async def test_tokens_with_unknown_keys_do_not_flood_the_provider(scene: SignOnScene) -> None:
    provider = scene.provider
    assert isinstance(await scene.sign_in(), SignedInSession)
    provider.sign = lambda claims: jwt.encode(
        claims, rsa_key("forged"), "RS256", headers={"kid": secrets.token_hex(4)}
    )
    for _ in range(5):
        assert isinstance(await scene.sign_in(), SignInFailed)
    assert provider.count("/keys") == 2


async def test_a_token_whose_keys_were_just_read_uses_up_no_search_for_a_new_key(
    scene: SignOnScene,
) -> None:
    """A server that has just started reads the keys for a token, and finds none of its id."""
    provider, connection = scene.provider, connection_of(scene)
    forged = jwt.encode({}, rsa_key("forged"), "RS256", headers={"kid": "forged"})
    assert not await end_provider_session(scene.auth, connection, forged)
    assert provider.count("/keys") == 1
    provider.published = ["second"]
    claims = provider.honest_claims(sub="ada", jti="1", events={id_tokens.LOGOUT_EVENT: {}})
    token = provider.honest_token(claims)
    assert await end_provider_session(scene.auth, connection, token)


async def test_a_provider_that_cannot_be_read_uses_up_no_search_for_a_new_key(
    scene: SignOnScene, monkeypatch: Patch
) -> None:
    provider, respond = scene.provider, scene.provider.respond
    assert isinstance(await scene.sign_in(), SignedInSession)
    started = [await scene.start() for _ in range(2)]
    provider.published = ["second"]

    def without_keys(path: str, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return (500, {}) if path == "/keys" else respond(path, form)

    with monkeypatch.context() as patch:
        patch.setattr(provider, "respond", without_keys)
        assert isinstance(await scene.finish(*started[0]), ProviderUnavailable)
    assert isinstance(await scene.finish(*started[1]), SignedInSession)


async def test_keys_for_something_else_do_not_hide_the_one_of_signatures(
    scene: SignOnScene, monkeypatch: Patch
) -> None:
    respond = scene.provider.respond

    def with_other_keys(path: str, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, body = respond(path, form)
        if path == "/keys":
            (key,) = body["keys"]
            curve = {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": key["kid"]}
            body = {"keys": [{**key, "use": "enc"}, curve, key]}
        return status, body

    monkeypatch.setattr(scene.provider, "respond", with_other_keys)
    assert isinstance(await scene.sign_in(), SignedInSession)


async def test_the_query_in_an_address_of_a_provider_stays(scene: SignOnScene) -> None:
    endpoint = f"{scene.provider.issuer}/authorize?tenant=a"
    scene.provider.metadata = {"authorization_endpoint": endpoint}
    started = await start_sign_in(scene.auth, "school", CHALLENGE)
    assert isinstance(started, SignInStarted)
    query = parse_qs(urlsplit(started.url).query)
    assert (query["tenant"], query["state"]) == (["a"], [started.state])


@pytest.mark.parametrize(
    ("ways", "is_in_header"),
    [
        (None, True),
        (["client_secret_basic", "client_secret_post"], True),
        (["client_secret_post"], False),
    ],
)
async def test_a_provider_gets_the_secret_in_the_way_of_a_client_that_registered_none(
    scene: SignOnScene, ways: list[str] | None, is_in_header: bool
) -> None:
    """Some providers of both ways refuse the other one (OpenID Connect Registration, 2)."""
    scene.provider.metadata = {"token_endpoint_auth_methods_supported": ways}
    assert isinstance(await scene.sign_in(), SignedInSession)
    (form,) = (form for path, form in scene.provider.requests if path == "/token")
    in_header = f"Basic {b64encode(b'slotlock:secret').decode()}"
    expected_proof = (in_header, None) if is_in_header else (None, "secret")
    assert (form["authorization"], form.get("client_secret")) == expected_proof


WRONG_CLAIMS: list[dict[str, Any]] = [
    {"iss": "https://elsewhere.example"},
    {"aud": "another client"},
    {"aud": [CLIENT_ID, "another client"]},
    {"azp": "another client"},
    {"exp": None},
    {"exp": "soon"},
    {"iat": float("inf")},
    {"at_hash": "another"},
    {"sub": None},
    {"sub": 7},
    {"sub": ""},
    {"sub": "a\x00"},
    {"sub": "\ud800"},
    {"sub": "x" * 256},
    {"sid": []},
    {"nonce": 7},
    {"nonce": "é"},
    {"nonce": "\ud800"},
    {"at_hash": "é"},
    {"nbf": "soon"},
    {"nbf": float("nan")},
    {"exp": float("nan")},
    {"iat": True},
]
WRONG_VALUES: list[Any] = [
    *(None, True, -1, 1e400, float("nan"), 10**400, "", "é", "\ud800", "a\x00", "x" * 100_000),
    *([], [None], [["a"]], {}, {"a": {}}),
]
NAMES_OF_CLAIMS = [
    *("iss", "aud", "azp", "iat", "exp", "nbf", "nonce", "at_hash", "sub", "sid", "jti"),
    *("email", "email_verified", "name", "given_name", "preferred_username", "groups"),
    *("_claim_names", "hasgroups", "events", "crit"),
]
NEEDED_CLAIMS = {"iss", "aud", "iat", "exp", "nonce", "sub"}
RIGHT_CLAIMS = [("exp", 10**400), ("sub", "é")]


@pytest.mark.parametrize("claims", WRONG_CLAIMS, ids=str)
async def test_each_claim_of_a_token_is_checked(scene: SignOnScene, claims: dict[str, Any]) -> None:
    scene.provider.claims |= claims
    assert isinstance(await scene.sign_in(), SignInFailed)


@pytest.mark.parametrize("name", NAMES_OF_CLAIMS)
async def test_no_value_of_a_claim_is_an_error_of_the_server(scene: SignOnScene, name: str) -> None:
    provider = scene.provider
    for value in WRONG_VALUES:
        provider.sign = partial(signed_with, {name: value})
        outcome = await scene.sign_in()
        if name in NEEDED_CLAIMS and (name, value) not in RIGHT_CLAIMS:
            assert isinstance(outcome, SignInFailed), value


@pytest.mark.parametrize("part", ["header", "tokens", "key", "user info", "metadata"])
async def test_no_value_elsewhere_in_a_response_is_an_error_of_the_server(
    scene: SignOnScene, part: str
) -> None:
    names = {
        "header": ["alg", "kid", "typ", "crit", "b64", "jku", "jwk"],
        "tokens": ["id_token", "access_token"],
        "key": ["kty", "kid", "use", "alg", "n", "e"],
        "user info": ["sub", "email", "email_verified", "name"],
        "metadata": ["token_endpoint_auth_methods_supported", "jwks_uri", "userinfo_endpoint"],
    }[part]
    # A server reads once what a provider says of itself.
    is_read_once = part in ("key", "metadata")
    lists = [[value] for value in WRONG_VALUES] if is_read_once else [WRONG_VALUES]
    for name, values in product(names, lists):
        async with scene.configured() as configured:
            for value in values:
                with lie(scene.provider, part, {name: value}):
                    started = await start_sign_in(
                        configured.auth, "school", challenge_of(scene.verifier)
                    )
                    if isinstance(started, SignInStarted):
                        await configured.finish(*scene.provider.code_for(started.url))


@contextmanager
def lie(provider: LyingProvider, part: str, wrong: dict[str, Any]) -> Iterator[None]:
    """Let a provider send wrong values in a part of what it sends."""
    respond = provider.respond

    def lying(path: str, form: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, body = respond(path, form)
        if part == "header" and path == "/token":
            claims = jwt.decode(body["id_token"], options={"verify_signature": False})
            header = jwt.get_unverified_header(body["id_token"])
            body = {**body, "id_token": signed(header | wrong, claims)}
        elif part == "key" and path == "/keys":
            body = {"keys": [{**body["keys"][0], **wrong}]}
        elif path == {"tokens": "/token", "user info": "/userinfo"}.get(part, WELL_KNOWN):
            body = {**body, **wrong}
        return status, body

    provider.respond = lying  # type: ignore[method-assign]
    try:
        yield
    finally:
        provider.respond = respond  # type: ignore[method-assign]


def signed_with(wrong: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return a token with wrong claims, which no library would write, and a right signature."""
    return signed({"alg": "RS256", "kid": "first"}, claims | wrong)


def signed(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return a token with a right signature."""
    parts = [jwt.utils.base64url_encode(json.dumps(part).encode()) for part in (header, claims)]
    message = b".".join(parts)
    signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(message, rsa_key("first"))
    return f"{message.decode()}.{jwt.utils.base64url_encode(signature).decode()}"


async def test_null_is_no_end_of_a_token(scene: SignOnScene) -> None:
    provider = scene.provider
    for name in ("exp", "iat", "nbf", "nonce", "at_hash", "sub", "sid"):
        provider.sign = partial(signed_with, {name: None})
        assert isinstance(await scene.sign_in(), SignInFailed), name


@WITH_AND_WITHOUT_GUARD
@pytest.mark.parametrize(
    ("name", "after_s"), [("exp", -121), ("iat", 3600), ("iat", -3600), ("nbf", 3600)]
)
async def test_a_token_of_another_time_is_refused(
    scene: SignOnScene, monkeypatch: Patch, name: str, after_s: int, is_guarded: bool
) -> None:
    scene.provider.claims[name] = int(time.time()) + after_s
    if not is_guarded:
        monkeypatch.setattr(id_tokens, "_check_times", lambda *_: None)
    assert isinstance(await scene.sign_in(), expected(is_guarded))


@pytest.mark.parametrize("skew_s", [-60, 60])
async def test_clocks_may_differ_by_a_minute(scene: SignOnScene, skew_s: int) -> None:
    now = int(time.time()) + skew_s
    scene.provider.claims |= {"iat": now, "exp": now + 30, "nbf": now}
    assert isinstance(await scene.sign_in(), SignedInSession)


async def test_a_token_for_several_clients_names_the_one_that_asked(scene: SignOnScene) -> None:
    scene.provider.claims |= {"aud": [CLIENT_ID, "api"], "azp": CLIENT_ID}
    assert isinstance(await scene.sign_in(), SignedInSession)


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://elsewhere.example"},
        {"token_endpoint": "http://elsewhere.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"userinfo_endpoint": "http://elsewhere.example/me"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
    ],
)
async def test_a_provider_that_describes_itself_wrongly_is_unavailable(
    scene: SignOnScene, metadata: dict[str, Any]
) -> None:
    scene.provider.metadata = metadata
    assert isinstance(await start_sign_in(scene.auth, "school", CHALLENGE), ProviderUnavailable)


OF_THIS_HOST = ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", "0.0.0.0", "[::]"]  # noqa: S104


@pytest.mark.parametrize("host", [*OF_THIS_HOST, "[::ffff:127.0.0.1]", "169.254.169.254"])
async def test_a_provider_elsewhere_leads_to_no_service_of_this_host(host: str) -> None:
    issuer = "https://login.example.org"
    url = f"https://{host}:1/keys"
    async with open_provider_client() as client:
        with pytest.raises(ProviderUnavailableError, match=r"the host is this one|canonical"):
            await client.get(issuer, url)
        for own in (f"https://{host}/", "http://127.0.0.1:2", "http://localhost"):
            assert may_be_local(url, own)


@pytest.mark.parametrize("host", OF_THIS_HOST[:3])
@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
def test_only_a_provider_on_this_host_names_endpoints_there(host: str, name: str) -> None:
    def metadata(issuer: str) -> dict[str, Any]:
        paths = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        return {"issuer": issuer, **dict.fromkeys(paths, f"{issuer}/x")}

    elsewhere = Provider("school", "School", "https://login.example.org", CLIENT_ID)
    with pytest.raises(ProviderUnavailableError, match=name):
        check_metadata(elsewhere, {**metadata(elsewhere.issuer), name: f"https://{host}/x"})
    here = Provider("school", "School", "http://127.0.0.1:1", CLIENT_ID)
    check_metadata(here, {**metadata(here.issuer), name: f"http://{host}/x"})


REDIRECTS = ["https://elsewhere.example/", f"{BOARD}/", f"{BOARD}?next=x", "javascript:alert(1)"]


@pytest.mark.parametrize("redirect_uri", REDIRECTS)
async def test_a_code_goes_only_to_addresses_of_the_settings(
    scene: SignOnScene, redirect_uri: str
) -> None:
    refused = await start_sign_in(scene.auth, "school", CHALLENGE, redirect_uri)
    assert isinstance(refused, InvalidInput)
    async with scene.configured(redirect_uris=(redirect_uri,)) as configured:
        allowed = await start_sign_in(configured.auth, "school", CHALLENGE, redirect_uri)
    assert isinstance(allowed, SignInStarted)


@pytest.mark.parametrize(
    ("provider_id", "challenge", "field"),
    [("nobody", CHALLENGE, "provider"), ("school", "short", "challenge")],
)
async def test_a_start_without_a_provider_or_challenge_is_invalid(
    scene: SignOnScene, provider_id: str, challenge: str, field: str
) -> None:
    refused = await start_sign_in(scene.auth, provider_id, challenge)
    assert isinstance(refused, InvalidInput)
    assert [each.field for each in refused.problems] == [field]


ADDRESSES = ("ada@slotlock.test", "eve@slotlock.test")


@pytest.mark.parametrize(
    ("of_token", "of_user_info"),
    [
        ({"email": ADDRESSES[0]}, {"email_verified": True}),
        ({"email": ADDRESSES[0]}, {"email": ADDRESSES[1], "email_verified": True}),
        ({"email_verified": True}, {"email": ADDRESSES[0]}),
        ({"email": ADDRESSES[0], "email_verified": False}, {"email_verified": True}),
    ],
)
def test_an_address_is_verified_by_what_names_it(
    of_token: dict[str, Any], of_user_info: dict[str, Any]
) -> None:
    provider = Provider("school", "School", "https://login.example.org", CLIENT_ID)
    claims = read_claims(provider, {"sub": "1", **of_token}, {"sub": "1", **of_user_info})
    assert (claims.email, claims.email_verified) == (ADDRESSES[0], False)


async def test_claims_about_another_user_are_refused(scene: SignOnScene) -> None:
    scene.provider.user_info = {"sub": "another", "email": "eve@slotlock.test"}
    assert isinstance(await scene.sign_in(), SignInFailed)


async def test_a_server_without_providers_starts_and_finishes_nothing(scene: SignOnScene) -> None:
    auth = replace(scene.auth, sign_on=SignOn([]))
    assert isinstance(await start_sign_in(auth, "school", CHALLENGE), InvalidInput)
    started = await scene.start()
    assert isinstance(await replace(scene, auth=auth).finish(*started), SignInFailed)
