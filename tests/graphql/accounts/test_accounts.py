"""Users register, sign in, refresh their sessions and log out."""

import secrets
from collections.abc import AsyncIterator

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json, http_client

SESSION = """{ __typename
  ... on Session { accessToken refreshToken expiresAt user { id name email role }
    verificationMail { isOnItsWay } }
  ... on Refusal { code message } }"""
REGISTERED = (
    SESSION[:-1]
    + """... on EmailTaken { email }
  ... on InvalidInput { fields { field message code values { name value } } } }"""
)
REGISTER = "mutation ($input: RegisterInput!) { register(input: $input) " + REGISTERED + "}"
LOGIN = "mutation ($input: LoginInput!) { login(input: $input) " + SESSION + "}"
REFRESH = "mutation ($token: String!) { refreshSession(refreshToken: $token) " + SESSION + "}"
ME = "{ me { id name email role } }"
LOGOUT = "mutation { logout }"
PASSWORD = "correct horse battery"


@pytest.fixture
async def client(app: AppProcess) -> AsyncIterator[GraphQLTestClient]:
    async with http_client() as http:
        yield GraphQLTestClient(http, app.url)


def new_address() -> str:
    return f"{secrets.token_hex(8)}@slotlock.test"


async def register(client: GraphQLTestClient, **fields: str) -> Json:
    input_ = {"name": "Ada", "email": new_address(), "password": PASSWORD, **fields}
    outcome: Json = await client.execute(REGISTER, input=input_)
    return outcome


async def login(client: GraphQLTestClient, email: str, password: str) -> Json:
    outcome: Json = await client.execute(LOGIN, input={"email": email, "password": password})
    return outcome


async def refresh(client: GraphQLTestClient, token: str) -> Json:
    outcome: Json = await client.execute(REFRESH, token=token)
    return outcome


def signed_in(client: GraphQLTestClient, session: Json) -> GraphQLTestClient:
    assert session["__typename"] == "Session", session
    return GraphQLTestClient(client.http, client.url, session["accessToken"])


async def test_registering_signs_a_member_in(client: GraphQLTestClient) -> None:
    email = new_address()
    session = await register(client, name="  Ada Lovelace ", email=email)
    me = await signed_in(client, session).execute(ME)
    assert me == session["user"]
    assert (me["name"], me["email"], me["role"]) == ("Ada Lovelace", email, "MEMBER")


async def test_registration_always_creates_a_member(client: GraphQLTestClient) -> None:
    input_ = {"name": "Eve", "email": new_address(), "password": PASSWORD, "role": "ADMIN"}
    assert await client.error_code(REGISTER, input=input_) == "BAD_USER_INPUT"
    eve = signed_in(client, await register(client))
    assert await eve.error_code('{ slotRoster(slotId: "x") { nodes { id } } }') == "FORBIDDEN"


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("a{}@slotlock.test", "A{}@SlotLock.TEST"),
        ("\u00e9{}@b\u00fccher.test", "e\u0301{}@xn--bcher-kva.test"),
    ],
)
async def test_equivalent_email_addresses_belong_to_one_account(
    client: GraphQLTestClient, first: str, again: str
) -> None:
    unique = secrets.token_hex(8)
    session = await register(client, email=first.format(unique))
    refused = await register(client, email=again.format(unique))
    assert (refused["__typename"], refused["code"]) == ("EmailTaken", "EMAIL_TAKEN")
    assert refused["email"] == session["user"]["email"]
    signed_in_again = await login(client, again.format(unique), PASSWORD)
    assert signed_in_again["user"] == session["user"]


async def test_all_invalid_fields_are_reported_together(client: GraphQLTestClient) -> None:
    refused = await register(client, name=" ", email="nobody", password="short")
    assert (refused["__typename"], refused["code"]) == ("InvalidInput", "INVALID_INPUT")
    assert [field["field"] for field in refused["fields"]] == ["name", "email", "password"]
    codes = [field["code"] for field in refused["fields"]]
    assert codes == ["NAME_MISSING", "INVALID_EMAIL", "PASSWORD_LENGTH"]
    lengths = [{"name": "minimum", "value": "8"}, {"name": "maximum", "value": "128"}]
    assert refused["fields"][2]["values"] == lengths
    assert all(field["message"] in refused["message"] for field in refused["fields"])


@pytest.mark.parametrize(
    "name",
    ["", "x" * 101, "two\nlines", "\u0000", "\u2028", "x\u202eadA", "x\u2067Ada\u2069x", "\u3164"],
)
async def test_a_name_is_a_line_of_100_characters(client: GraphQLTestClient, name: str) -> None:
    refused = await register(client, name=name)
    assert [field["field"] for field in refused["fields"]] == ["name"]


async def test_a_wrong_password_and_an_unknown_address_get_the_same_response(
    client: GraphQLTestClient,
) -> None:
    email = new_address()
    await register(client, email=email)
    wrong = await login(client, email, PASSWORD + "?")
    assert wrong["__typename"] == "InvalidCredentials"
    assert wrong == await login(client, new_address(), PASSWORD)
    assert wrong == await login(client, email, "x" * 5_000)
    assert wrong == await login(client, email, "")


async def test_a_session_is_refreshed_with_new_tokens(client: GraphQLTestClient) -> None:
    first = await register(client)
    second = await refresh(client, first["refreshToken"])
    third = await refresh(client, second["refreshToken"])
    assert first["user"] == second["user"] == third["user"]
    tokens = {s[kind] for s in (first, second, third) for kind in ("accessToken", "refreshToken")}
    assert len(tokens) == 6
    for session in (first, second, third):
        assert await signed_in(client, session).execute(ME) == first["user"]


async def test_reusing_a_refresh_token_revokes_its_whole_family(client: GraphQLTestClient) -> None:
    email = new_address()
    stolen = await register(client, email=email)
    used = await refresh(client, stolen["refreshToken"])
    newest = await refresh(client, used["refreshToken"])
    elsewhere = await login(client, email, PASSWORD)
    assert (await refresh(client, stolen["refreshToken"]))["code"] == "INVALID_SESSION"
    assert (await refresh(client, newest["refreshToken"]))["code"] == "INVALID_SESSION"
    for session in (stolen, newest):
        assert await signed_in(client, session).error_code(ME) == "UNAUTHENTICATED"
    assert (await refresh(client, elsewhere["refreshToken"]))["__typename"] == "Session"


async def test_access_and_refresh_tokens_are_not_interchangeable(client: GraphQLTestClient) -> None:
    session = await register(client)
    refused = await refresh(client, session["accessToken"])
    assert (refused["__typename"], refused["code"]) == ("InvalidSession", "INVALID_SESSION")
    client.token = session["refreshToken"]
    assert await client.error_code(ME) == "UNAUTHENTICATED"
    # Neither attempt used up the refresh token.
    assert (await refresh(client, session["refreshToken"]))["__typename"] == "Session"


@pytest.mark.parametrize("token", ["", "x", "x.y.z", "\u0000", "\u00e9", "x" * 20_000])
async def test_a_malformed_refresh_token_is_rejected(client: GraphQLTestClient, token: str) -> None:
    assert (await refresh(client, token))["code"] == "INVALID_SESSION"


async def test_logging_out_ends_only_the_current_session(client: GraphQLTestClient) -> None:
    email = new_address()
    here, there = await register(client, email=email), await login(client, email, PASSWORD)
    client_here = signed_in(client, here)
    assert await client_here.execute(LOGOUT) is True
    assert await client_here.error_code(ME) == "UNAUTHENTICATED"
    assert await client_here.error_code(LOGOUT) == "UNAUTHENTICATED"
    assert (await refresh(client, here["refreshToken"]))["code"] == "INVALID_SESSION"
    assert await signed_in(client, there).execute(ME) == here["user"]


async def test_an_anonymous_caller_has_no_account(client: GraphQLTestClient) -> None:
    assert await client.execute(ME) is None
    assert await client.error_code(LOGOUT) == "UNAUTHENTICATED"
    assert await client.error_code("{ myBookings { nodes { id } } }") == "UNAUTHENTICATED"


async def test_password_attempts_are_limited_when_rate_limits_are_off(
    app: AppProcess, client: GraphQLTestClient
) -> None:
    assert app.environment["SLOTLOCK_RATE_LIMITS"] == "off"
    email = new_address()
    guesses = [(await login(client, email, "wrong"))["__typename"] for _ in range(11)]
    assert guesses == ["InvalidCredentials"] * 10 + ["TooManyAttempts"]
