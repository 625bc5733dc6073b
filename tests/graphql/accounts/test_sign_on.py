"""Users sign in at a provider of the school, in the way of a browser, over HTTP."""

import secrets
from collections.abc import Iterator

import httpx
import pytest

from slotlock.auth.sign_on.sign_in import challenge_of
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.sign_on.mock_provider import MockProvider, mock_provider
from tests.support.stores.users import new_email

PROVIDER = """[[provider]]
id = "school"
name = "Example School"
issuer = "{issuer}"
client_id = "slotlock"
client_secret = "secret"
redirect_uris = ["org.example.app:/signed-in"]
groups = {{ "class-5a" = "5a", "class-5b" = "5b" }}
"""
PUBLIC_URL = "https://slots.example.org"
START = """mutation($provider: String!, $challenge: String!, $redirectUri: String) {
  startSignIn(provider: $provider, challenge: $challenge, redirectUri: $redirectUri) {
    __typename ... on SignInStarted { url state expiresAt }
    ... on Refusal { code message } ... on InvalidInput { fields { field code } }
} }"""
FINISH = """mutation($state: String!, $code: String!, $verifier: String!) {
  finishSignIn(state: $state, code: $code, verifier: $verifier) {
    __typename ... on Refusal { code } ... on LinkRequired { email }
    ... on Session { accessToken refreshToken
      user { id name email username role groups hasPassword emailVerified } }
} }"""
LINK = """mutation($state: String!, $code: String!, $verifier: String!) {
  linkSignIn(state: $state, code: $code, verifier: $verifier) {
    __typename ... on Refusal { code } ... on SignInLinked { user { identities { id } } }
} }"""
PASSWORD = "correct horse battery"
REGISTER = """mutation($input: RegisterInput!) { register(input: $input) {
  ... on Session { accessToken } } }"""
LINK_WITH_PASSWORD = """mutation($state: String!, $code: String!, $verifier: String!) {
  linkSignIn(state: $state, code: $code, verifier: $verifier, currentPassword: "%s") {
    __typename ... on Refusal { code } } }"""
UNLINK_OF_USER = """mutation($user: ID!, $id: ID!) {
  unlinkUserSignIn(userId: $user, identity: $id) {
    __typename ... on UserSignInUnlinked { user { signsInAtProvider identities { id } } }
    ... on Refusal { code } } }"""
IDENTITIES = "query($id: ID!) { node(id: $id) { ... on User { identities { id email } } } }"
UNLINK = """mutation($id: ID!) { unlinkSignIn(identity: $id) {
  __typename ... on SignInUnlinked { user { identities { id } } } ... on Refusal { code } } }"""
ME = "{ me { id name groups identities { id provider email linkedAt } } }"


@pytest.fixture(scope="module")
def provider() -> Iterator[MockProvider]:
    with mock_provider() as running:
        yield running


@pytest.fixture(scope="module")
def app(
    provider: MockProvider, servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    directory = tmp_path_factory.mktemp("sign_on")
    file = directory / "providers.toml"
    file.write_text(PROVIDER.format(issuer=provider.issuer))
    environment = {
        **app_environment(servers, "sign_on"),
        "SLOTLOCK_PUBLIC_URL": PUBLIC_URL,
        "SLOTLOCK_PROVIDERS": str(file),
    }
    with forked_app(environment, directory) as running:
        yield running


class Browser(GraphQLTestClient):
    """A client that remembers its verifier, as a page does for its tab."""

    def __init__(self, http: httpx.AsyncClient, app: AppProcess) -> None:
        super().__init__(http, app.url)
        self.verifier = secrets.token_urlsafe(32)

    async def start(self, **fields: str) -> Json:
        """Start a sign-in and return the result."""
        fields = {"provider": "school", "challenge": challenge_of(self.verifier), **fields}
        started: Json = await self.execute(START, **fields)
        return started

    async def come_back(self, provider: MockProvider, subject: str, document: str = FINISH) -> Json:
        """Start a sign-in, sign in at the provider, and finish it."""
        started = await self.start()
        found = provider.sign_in(started["url"], subject)
        assert found["state"] == started["state"]
        fields = {"state": found["state"], "code": found["code"], "verifier": self.verifier}
        outcome: Json = await self.execute(document, **fields)
        if outcome["__typename"] == "Session":
            self.token = outcome["accessToken"]
        return outcome


@pytest.fixture
def browser(http: httpx.AsyncClient, app: AppProcess) -> Browser:
    return Browser(http, app)


@pytest.fixture
def subject(provider: MockProvider) -> str:
    """Return a new user of the provider."""
    subject = secrets.token_hex(8)
    email = f"{subject}@slotlock.test"
    provider.add_user(subject, name="Ada Lovelace", email=email, email_verified=True)
    return subject


async def test_everybody_reads_at_which_providers_users_sign_in(browser: Browser) -> None:
    site = await browser.execute("{ site { passwordSignIn signInProviders { id name } } }")
    providers = [{"id": "school", "name": "Example School"}]
    assert site == {"passwordSignIn": True, "signInProviders": providers}


async def test_the_first_sign_in_creates_an_account_and_the_next_one_finds_it(
    browser: Browser, provider: MockProvider, subject: str
) -> None:
    first = await browser.come_back(provider, subject)
    user = first["user"]
    assert (user["name"], user["role"]) == ("Ada Lovelace", "MEMBER")
    assert user["email"] == f"{subject}@slotlock.test"
    assert user["emailVerified"]
    assert not user["hasPassword"]
    provider.add_user(subject, name="Ada King", email="ada.king@slotlock.test")
    again = await browser.come_back(provider, subject)
    assert again["user"] == user
    (identity,) = (await browser.execute(ME))["identities"]
    assert identity["provider"] == "school"
    assert identity["email"] == "ada.king@slotlock.test"


async def test_mapped_groups_follow_the_provider_and_others_stay(
    browser: Browser, provider: MockProvider, subject: str, organizer: GraphQLTestClient
) -> None:
    provider.add_user(subject, groups=["class-5a", "unknown"])
    first = await browser.come_back(provider, subject)
    assert first["user"]["groups"] == ["5a"]
    # The provider has not verified an address.
    vouch = "mutation($user: ID!) { vouchForUser(userId: $user) { __typename } }"
    await organizer.execute(vouch, user=first["user"]["id"])
    await organizer.execute(
        "mutation($input: SetGroupsInput!) { setGroups(input: $input) { __typename } }",
        input={"userId": first["user"]["id"], "groups": ["5a", "choir"]},
    )
    provider.add_user(subject, groups=["class-5b"])
    assert (await browser.come_back(provider, subject))["user"]["groups"] == ["5b", "choir"]


async def test_the_address_of_the_provider_names_the_client_and_its_secrets(
    browser: Browser, provider: MockProvider
) -> None:
    started = await browser.start()
    url = httpx.URL(started["url"])
    assert str(url).startswith(provider.issuer)
    assert url.params["redirect_uri"] == f"{PUBLIC_URL}/board"
    assert url.params["code_challenge_method"] == "S256"
    assert url.params["code_challenge"] != challenge_of(browser.verifier)
    assert len(url.params["nonce"]) == len(url.params["state"].removeprefix("school.")) == 43
    app_started = await browser.start(redirectUri="org.example.app:/signed-in")
    assert httpx.URL(app_started["url"]).params["redirect_uri"] == "org.example.app:/signed-in"


async def test_a_user_links_and_unlinks_another_sign_in(
    browser: Browser, provider: MockProvider, subject: str
) -> None:
    await browser.come_back(provider, subject)
    (first,) = (await browser.execute(ME))["identities"]
    assert await browser.execute(UNLINK, id=first["id"]) == {
        "__typename": "LastSignIn",
        "code": "LAST_SIGN_IN",
    }
    linked = await browser.come_back(provider, secrets.token_hex(8), LINK)
    assert len(linked["user"]["identities"]) == 2
    unlinked = await browser.execute(UNLINK, id=first["id"])
    assert len(unlinked["user"]["identities"]) == 1


async def test_only_the_user_sees_the_sign_ins(
    browser: Browser, provider: MockProvider, subject: str, organizer: GraphQLTestClient
) -> None:
    session = await browser.come_back(provider, subject)
    assert await organizer.execute(IDENTITIES, id=session["user"]["id"]) == {"identities": None}


async def test_an_admin_sees_and_unlinks_the_sign_ins_of_a_user(
    browser: Browser, provider: MockProvider, subject: str, admin: BookingClient
) -> None:
    user = (await browser.come_back(provider, subject))["user"]
    (identity,) = (await admin.execute(IDENTITIES, id=user["id"]))["identities"]
    assert identity["email"] == user["email"]
    ids = {"user": user["id"], "id": identity["id"]}
    assert await browser.error_code(UNLINK_OF_USER, **ids) == "FORBIDDEN"
    unlinked = await admin.execute(UNLINK_OF_USER, **ids)
    assert unlinked["__typename"] == "UserSignInUnlinked"
    assert await browser.error_code(ME) == "UNAUTHENTICATED"


async def test_a_user_with_a_password_gives_it_to_link_a_sign_in(
    browser: Browser, provider: MockProvider, subject: str
) -> None:
    account = {"name": "Mia", "email": new_email(), "password": PASSWORD}
    browser.token = (await browser.execute(REGISTER, input=account))["accessToken"]
    refused = await browser.come_back(provider, subject, LINK)
    assert refused == {
        "__typename": "ReauthenticationRequired",
        "code": "REAUTHENTICATION_REQUIRED",
    }
    guessed = await browser.come_back(provider, subject, LINK_WITH_PASSWORD % "guessed")
    assert guessed["code"] == "INVALID_CREDENTIALS"
    linked = await browser.come_back(provider, subject, LINK_WITH_PASSWORD % PASSWORD)
    assert linked == {"__typename": "SignInLinked"}


async def test_the_export_of_a_user_has_their_sign_ins(
    browser: Browser, provider: MockProvider, subject: str
) -> None:
    await browser.come_back(provider, subject)
    exported = await browser.http.get(f"{browser.url}/personal-data", headers=browser.headers)
    assert f"{provider.issuer} {subject}" in exported.text


async def test_the_back_channel_takes_only_tokens_of_its_provider(browser: Browser) -> None:
    url = f"{browser.url}/sign-on/school/logout"
    refused = await browser.http.post(url, data={"logout_token": "a.b.c"})
    assert (refused.status_code, refused.json()) == (
        400,
        {"error": "invalid_request", "code": "BAD_USER_INPUT"},
    )
    assert (await browser.http.post(url, content=b"x" * 200_000)).status_code == 413
    assert (await browser.http.get(url)).status_code == 405
    unknown = await browser.http.post(url.replace("school", "nobody"), data={"logout_token": "a"})
    assert unknown.status_code == 404


async def test_no_input_of_a_client_is_an_error_of_the_server(browser: Browser) -> None:
    for text in ("", "\u00e9", "x" * 20_000, "\x00"):
        started = await browser.start()
        for state in (started["state"], text):
            fields = {"state": state, "code": text, "verifier": browser.verifier}
            assert (await browser.execute(FINISH, **fields))["code"] == "SIGN_IN_FAILED"
        for name in ("provider", "challenge", "redirectUri"):
            if text or name != "redirectUri":
                assert (await browser.start(**{name: text}))["code"] == "INVALID_INPUT"
