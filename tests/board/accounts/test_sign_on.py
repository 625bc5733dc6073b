"""Users sign in on the board at a provider of the school, in a real browser."""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page, Request, Route, expect

from slotlock.auth.sign_on.sign_in import challenge_of
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment, free_port
from tests.support.board.pages import PASSWORD, Board, asks_for, before_each, shown
from tests.support.clients.client import GraphQLTestClient
from tests.support.sign_on.mock_provider import MockProvider, mock_provider

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROVIDER = """[[provider]]
id = "school"
name = "Example School"
issuer = "{issuer}"
client_id = "slotlock"
client_secret = "secret"
"""
SIGN_IN, LINK = "Sign in with Example School", "Link Example School"
START = """mutation($challenge: String!) {
  startSignIn(provider: "school", challenge: $challenge) { ... on SignInStarted { url } } }"""
FIND_USERS = "query($text: String!) { users(filter: {text: $text}) { nodes { id } } }"
STORED = "JSON.stringify([Object.keys(sessionStorage), localStorage['slotlock.refreshToken'] ?? 0])"


@pytest.fixture(scope="module")
def provider() -> Iterator[MockProvider]:
    with mock_provider() as running:
        yield running


@contextmanager
def app_with(
    provider: MockProvider, servers: EmbeddedServers, directory: Path, **settings: str
) -> Iterator[AppProcess]:
    """Run an app whose users come back to the address at which the browser sees it."""
    file, port = directory / "providers.toml", free_port()
    file.write_text(PROVIDER.format(issuer=provider.issuer))
    environment = {
        **app_environment(servers, "board_sign_on"),
        "PORT": str(port),
        "SLOTLOCK_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "SLOTLOCK_PROVIDERS": str(file),
        **settings,
    }
    with forked_app(environment, directory) as running:
        yield running


@pytest.fixture(scope="module")
def app(
    provider: MockProvider, servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Run an app at which users sign in with a password, too."""
    with app_with(provider, servers, tmp_path_factory.mktemp("board_sign_on")) as running:
        yield running


@pytest.fixture
def subject(provider: MockProvider) -> str:
    """Return a new user of the provider."""
    subject = secrets.token_hex(8)
    email = f"{subject}@slotlock.test"
    provider.add_user(subject, name="Ada Lovelace", email=email, email_verified=True)
    return subject


async def go_to_provider(page: Page, button: str, subject: str) -> None:
    """Go to the provider by the keyboard, and sign in there."""
    await page.get_by_role("button", name=button).press("Enter")
    await page.locator("input[name=sub]").fill(subject)
    await page.get_by_role("button", name="Authorize", exact=True).click()
    await page.wait_for_url("**/board#**")


async def test_a_user_signs_in_and_arrives_where_the_link_pointed(
    board: Board, subject: str
) -> None:
    course = await board.course()
    page = await board.open(await board.context(), course.address)
    await course.button(page, "signin", "open", "almost").click()
    await go_to_provider(page, SIGN_IN, subject)
    await page.get_by_role("link", name="Ada Lovelace").wait_for()
    await page.wait_for_url(f"**/board{course.address}")
    await course.row(page, "open").wait_for()
    assert "slotlock.signIn" not in await page.evaluate(STORED)
    await page.goto("/board#/account")
    await page.get_by_role("button", name="Unlink").press("Enter")
    await shown(page, "This is your only way to sign in.").wait_for()


async def pass_slowly(route: Route) -> None:
    """Let the texts of the page arrive after its view."""
    await asyncio.sleep(0.5)
    await route.continue_()


async def test_a_sign_in_of_another_browser_is_refused_and_nothing_is_sent(
    board: Board, provider: MockProvider, subject: str
) -> None:
    attacker = GraphQLTestClient(board.http, board.app.url)
    started = await attacker.execute(START, challenge=challenge_of(secrets.token_urlsafe(32)))
    sent: list[bool] = []

    def note(request: Request) -> None:
        sent.append(asks_for(request, "finishSignIn"))

    context = await board.context()
    context.on("request", note)
    await context.route("**/messages/*.js", pass_slowly)
    page = await board.open(context, f"?{provider.sign_in(started['url'], subject)}")
    await shown(page, "did not begin in this tab").wait_for()
    assert page.url == f"{board.app.url}/board#/signon"
    assert sent
    assert not any(sent)
    assert await page.evaluate(STORED) == "[[],0]"
    await page.get_by_role("main").get_by_role("button", name="Sign in").click()
    await page.get_by_role("button", name=SIGN_IN).wait_for()


async def test_a_provider_that_refuses_is_named(board: Board) -> None:
    page = await board.open(await board.context(), "#/signin")
    await page.get_by_role("button", name=SIGN_IN).press("Enter")
    await page.get_by_role("button", name="Deny").wait_for()
    # The provider of the tests would leave the state out (RFC 6749, 4.1.2.1).
    answer = {"state": httpx.URL(page.url).params["state"], "error": "access_denied"}
    await page.route("**/messages/*.js", pass_slowly)
    await page.goto(f"/board?{httpx.QueryParams(answer)}")
    await shown(page, "Example School did not let you in").wait_for()


async def test_a_user_links_and_unlinks_the_sign_in_in_the_account(
    board: Board, subject: str
) -> None:
    student = await board.student()
    page = await board.open(await board.context(student), "#/account")
    await go_to_provider(page, LINK, subject)
    for password, text in (("a wrong one", "does not match"), (PASSWORD, subject)):
        await page.get_by_label("Current password").fill(password)
        await page.get_by_label("Current password").press("Enter")
        await shown(page, text).wait_for()
    await shown(page, f"{subject}@slotlock.test").wait_for()
    await expect(page.get_by_role("button", name=LINK)).to_have_count(0)
    await page.get_by_role("button", name="Unlink: Example School").press("Enter")
    await shown(page, "It is unlinked.").wait_for()
    await page.get_by_role("button", name=LINK).wait_for()


async def test_a_user_without_a_password_is_led_to_a_fresh_sign_in_for_a_link(
    board: Board, subject: str
) -> None:
    page = await board.open(await board.context(await board.student()), "#/account")
    await go_to_provider(page, LINK, subject)
    await shown(page, "If you have none, sign out and in again first.").wait_for()
    await page.get_by_role("button", name="Sign out").press("Enter")
    await go_to_provider(page, SIGN_IN, subject)
    await page.wait_for_url("**/board#/account")
    await page.get_by_role("heading", name="Ada Lovelace").wait_for()


async def test_a_page_that_asks_for_a_password_stays_whole_after_a_sign_out_elsewhere(
    board: Board, subject: str
) -> None:
    page = await board.open(await board.context(await board.student()), "#/account")
    await go_to_provider(page, LINK, subject)
    await page.get_by_label("Current password").wait_for()
    await page.evaluate("localStorage.clear(); dispatchEvent(new StorageEvent('storage'))")
    await page.locator('nav a[href="#/signin"]').wait_for()
    await page.get_by_label("Current password").fill(PASSWORD)
    await page.get_by_label("Current password").press("Enter")
    await shown(page, "did not begin in this tab").wait_for()


async def test_an_admin_sees_and_unlinks_the_sign_in_of_a_user(board: Board, subject: str) -> None:
    page = await board.open(await board.context(), "#/signin")
    await go_to_provider(page, SIGN_IN, subject)
    await page.get_by_role("link", name="Ada Lovelace").wait_for()
    admin = await board.admin()
    (user,) = (await admin.execute(FIND_USERS, text=subject))["nodes"]
    context, is_due = await board.context(admin), asyncio.Event()
    await before_each(context, "userBookings", is_due.wait)
    view = "people"
    page = await board.open(context, f"#/{view}/{user['id']}")
    await shown(page, f"{subject}@slotlock.test").wait_for()
    await page.get_by_role("button", name="Unlink: Example School").focus()
    is_due.set()
    # What comes above the button moves it, and takes no focus.
    await page.get_by_role("heading", name="Places").wait_for()
    await page.keyboard.press("Enter")
    await shown(page, "It is unlinked.").wait_for()


async def test_a_user_with_an_account_is_led_to_its_password_and_then_to_the_link(
    board: Board, provider: MockProvider, subject: str
) -> None:
    email = f"{subject}@slotlock.test"
    provider.add_user(subject, email=email, email_verified=False)
    await board.student(email=email)
    page = await board.open(await board.context(), "#/signin")
    await go_to_provider(page, SIGN_IN, subject)
    await shown(page, f"There is an account with {email}.").wait_for()
    await page.get_by_role("main").get_by_role("button", name="Sign in").click()
    await page.get_by_label("Email address").fill(email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()
    await page.get_by_role("button", name=LINK).wait_for()


async def test_the_provider_comes_first_where_nobody_registers_with_a_password(
    board: Board, provider: MockProvider, servers: EmbeddedServers, tmp_path: Path
) -> None:
    with app_with(provider, servers, tmp_path, SLOTLOCK_REGISTRATION="closed") as closed:
        context = await board.context(url=closed.url, viewport={"width": 320, "height": 800})
        page = await board.open(context, "#/signin")
        first = page.locator("main :is(button, input)").first
        await expect(first).to_have_text(SIGN_IN)
        await shown(page, "Or with a password:").wait_for()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 320
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert (await Axe().run(page)).response["violations"] == []
