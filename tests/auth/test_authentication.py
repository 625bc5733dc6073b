"""Registration and sign-in: identities, addresses in every spelling, and refusals."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from slotlock.auth.accounts import EmailTaken, register
from slotlock.auth.container import Auth
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.tokens import TokenClaims, TokenSigner, new_token_id
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.domain.users.user import UserId
from slotlock.services.container import utc_now
from tests.support.apps.processes import SECRET, AppProcess
from tests.support.clients.client import GraphQLTestClient, http_client

REGISTER = """mutation ($input: RegisterInput!) {
  register(input: $input) { __typename ... on Session { accessToken refreshToken } }
}"""
LOGIN = "mutation ($input: LoginInput!) { login(input: $input) { __typename } }"
REFRESH = "mutation ($token: String!) { refreshSession(refreshToken: $token) { __typename } }"
ME = "{ me { id } }"
PASSWORD = "correct horse battery"
EQUAL_FORMS = [
    ("jo@x.test", "JO@X.TEST", " jo@x.test "),
    ("a@b\u00fccher.test", "a@xn--bcher-kva.test", "a@XN--BCHER-KVA.test", "a@B\u00dcCHER.test"),
    ("a@fa\u00df.test", "a@xn--fa-hia.test"),
    # UTS 46 maps similar characters of a domain to the same name.
    ("a@x.test", "a@\uff58.test", "a@x\u3002test"),
    ("k@x.test", "\u212a@x.test"),
    ("\u00e5@x.test", "\u212b@x.test", "A\u030a@x.test"),
    ("\u00e9@x.test", "e\u0301@x.test", "\u00c9@x.test"),
    ("stra\u00dfe@x.test", "STRA\u1e9eE@x.test"),
    # Only the lower-case letter has a composed form.
    ("\u01f0@x.test", "J\u030c@x.test"),
]
DIFFERENT_ADDRESSES = [
    ("admin@x.test", "\u0430dmin@x.test", "adm\u0131n@x.test", "ADM\u0130N@x.test"),
    ("fine@x.test", "\ufb01ne@x.test"),
    ("jo@x.test", "\uff4ao@x.test", "\u2460@x.test"),
    ("strasse@x.test", "stra\u00dfe@x.test"),
    ("a@fass.test", "a@fa\u00df.test"),
    ("a@\u03bb\u03cc\u03b3\u03bf\u03c2.test", "a@\u03bb\u03cc\u03b3\u03bf\u03c3.test"),
    ("a@x.test", "a+1@x.test", "a+2@x.test", "a@y.test"),
]
INVALID_ADDRESSES = [
    "", "a", "a@", "@b.test", "a b@c.test", "a@b\n.test",
    "a\u200bb@x.test", "a\u200db@x.test", "a\ufeffb@x.test", "a\u00adb@x.test", "a\u2060b@x.test",
    "a\u202eb@x.test", "a\u200fb@x.test", "a\u2067b@x.test", "a\ufe0fb@x.test", "a\u034fb@x.test",
    "a\u3164b@x.test", "a\u2800b@x.test", "a\u115fb@x.test", "a\U000e0061b@x.test",
    "a\U000e0100b@x.test", "a\u00a0b@x.test", "a\u0000@x.test", "\ud800@x.test", "a@x.test.",
    "a.@x.test", ".a@x.test", "a..b@x.test", "a@x..test", '"a"@x.test', '"a b"@x.test',
    "a(c)@x.test", "<a@x.test>", "A <a@x.test>", "a@[127.0.0.1]", "a@x.test,b@x.test",
    "a@x.test\r\nBcc: b@x.test", "a@i\u2764.test", "a@" + "x" * 300 + ".test",
    "a" + "\u0301" * 15_000 + "\u0316" * 15_000 + "@x.test",
]  # fmt: skip


@pytest.fixture
async def client(app: AppProcess) -> AsyncIterator[GraphQLTestClient]:
    async with http_client() as http:
        yield GraphQLTestClient(http, app.url)


def sign_access_token(secret: str, *, expired: bool) -> str:
    """Return an access token whose session does not exist."""
    now = utc_now() - timedelta(hours=1 if expired else 0)
    claims = TokenClaims(UserId("0" * 24), "-" * 22, new_token_id(), now + timedelta(minutes=15))
    return TokenSigner([secret]).sign("access", claims, now)


INVALID_TOKENS = {
    "garbled": "x.y.z",
    "expired": sign_access_token(SECRET, expired=True),
    "of an ended session": sign_access_token(SECRET, expired=False),
    "signed by another key": sign_access_token(
        "another secret, longer than 32 bytes", expired=False
    ),
    "deeply nested": "W1tb" * 1000 + ".e30.AA",
}


@pytest.mark.parametrize("kind", INVALID_TOKENS)
async def test_an_invalid_token_does_not_prevent_login_and_refresh(
    client: GraphQLTestClient, kind: str
) -> None:
    client.token = INVALID_TOKENS[kind]
    email = f"{secrets.token_hex(8)}@slotlock.test"
    credentials = {"email": email, "password": PASSWORD}
    session = await client.execute(REGISTER, input={**credentials, "name": "Ada"})
    assert session["__typename"] == "Session"
    assert (await client.execute(LOGIN, input=credentials))["__typename"] == "Session"
    refreshed = await client.execute(REFRESH, token=session["refreshToken"])
    assert refreshed["__typename"] == "Session"


@pytest.mark.parametrize("kind", INVALID_TOKENS)
@pytest.mark.parametrize(
    "query",
    [ME, "mutation { logout }", "{ myBookings { nodes { id } } }", "{ slots { nodes { id } } }"],
)
async def test_an_invalid_token_is_unauthenticated_and_never_anonymous(
    client: GraphQLTestClient, kind: str, query: str
) -> None:
    client.token = INVALID_TOKENS[kind]
    assert await client.error_code(query) == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    "header", ["Bearer", "Basic YTpi", "Token x", "x", "Bearer \u00e9", "Bearer a b"]
)
async def test_a_header_without_a_bearer_token_is_unauthenticated(
    client: GraphQLTestClient, header: str
) -> None:
    headers = {"Authorization": header.encode("latin-1")}
    response = await client.http.post(
        client.url + "/graphql",
        json={"query": ME},
        headers=headers,  # type: ignore[arg-type]
    )
    assert response.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"


async def test_the_scheme_is_case_insensitive(client: GraphQLTestClient) -> None:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    session = await client.execute(
        REGISTER, input={"name": "Ada", "email": email, "password": PASSWORD}
    )
    headers = {"Authorization": f"bEARER {session['accessToken']}"}
    response = await client.http.post(client.url + "/graphql", json={"query": ME}, headers=headers)
    assert response.json()["data"]["me"] is not None


async def test_public_data_can_be_read_without_a_header(client: GraphQLTestClient) -> None:
    assert (await client.execute("{ slots { nodes { id } } }"))["nodes"] is not None
    assert await client.execute(ME) is None


@pytest.mark.parametrize("forms", EQUAL_FORMS, ids=lambda forms: ascii(forms[-1]))
def test_forms_of_one_address_are_normalized_alike(forms: tuple[str, ...]) -> None:
    assert len({normalize_email(form) for form in forms}) == 1
    assert normalize_email(forms[0]) is not None


@pytest.mark.parametrize("forms", DIFFERENT_ADDRESSES, ids=lambda forms: ascii(forms[-1]))
def test_similar_addresses_stay_different(forms: tuple[str, ...]) -> None:
    normalized = {normalize_email(form) for form in forms}
    assert len(normalized - {None}) == len(forms)


@pytest.mark.parametrize("text", INVALID_ADDRESSES, ids=ascii)
def test_hidden_characters_and_complex_addresses_are_invalid(text: str) -> None:
    assert normalize_email(text) is None


def test_a_normalized_address_is_normalized_to_itself() -> None:
    for form in (form for forms in EQUAL_FORMS + DIFFERENT_ADDRESSES for form in forms):
        normalized = normalize_email(form)
        assert normalized is not None
        assert normalize_email(normalized) == normalized


async def test_one_of_concurrent_registrations_of_an_address_succeeds(auth: Auth) -> None:
    tag = secrets.token_hex(8)
    forms = [f"{tag}\u00e9@b\u00fccher.test", f"{tag}E\u0301@xn--bcher-kva.test"] * 3
    outcomes = await asyncio.gather(
        *(register(auth, "Ada", form, "correct horse battery") for form in forms)
    )
    assert sum(isinstance(outcome, SignedInSession) for outcome in outcomes) == 1
    taken = [outcome for outcome in outcomes if isinstance(outcome, EmailTaken)]
    assert {outcome.email for outcome in taken} == {normalize_email(forms[0])}
    assert len(taken) == 5
