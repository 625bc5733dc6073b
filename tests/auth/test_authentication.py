"""Authentication by the `Authorization` header: valid, invalid and missing tokens."""

import secrets
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from slotlock.auth.tokens import TokenClaims, TokenSigner, new_token_id
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
