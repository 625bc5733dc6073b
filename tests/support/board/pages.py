"""Students with pages of the board, against a running app."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    Request,
    Route,
)

from slotlock.api.board.files import ALONE, START, board_files
from slotlock.api.board.modules import merged_modules
from slotlock.auth.admin import account_admin
from slotlock.domain.users.user import Role, UserId
from tests.support.apps.processes import ADMIN_EMAIL, ADMIN_PASSWORD, AppProcess
from tests.support.board.sources import sent_modules
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.polling import TIMEOUT_S
from tests.support.scenarios.led_course import CREATE_LED
from tests.support.stores.users import auth_for_database, new_email

VOUCH = "mutation($id: ID!) { vouchForUser(userId: $id) { __typename } }"
REGISTER = """mutation($input: RegisterInput!) { register(input: $input) {
  ... on Session { accessToken refreshToken }
} }"""
LOGIN = """mutation($input: LoginInput!) { login(input: $input) {
  ... on Session { accessToken refreshToken }
} }"""
CREATE_USER = """mutation($input: CreateUserInput!) { createUser(input: $input) {
  ... on UserCreated { invitationToken } } }"""
# Notes what is said to screen readers.
NOTE_SAYINGS = """globalThis.sayings = [];
new MutationObserver(() => {
  const said = document.getElementById("status")?.textContent;
  if (said && said !== sayings.at(-1)) sayings.push(said);
}).observe(document, { childList: true, subtree: true });"""
PASSWORD = "correct horse battery staple"
OPEN_STATES = ("open", "almost")
# The values of a parameter that says whether pages have the guards of the test.
GUARDED = [pytest.param(True, id="guarded"), pytest.param(False, id="control")]


class Student(BookingClient):
    """A user with the refresh token that a browser stores."""

    refresh_token: str


@dataclass(frozen=True)
class Course:
    """A slot in a campaign of its own."""

    campaign_id: str
    slot_id: str

    @property
    def address(self) -> str:
        """The address of the campaign's view."""
        return f"#/campaign/{self.campaign_id}"

    def row(self, page: Page, *states: str) -> Locator:
        """Return the row of the slot while it is in one of these states."""
        row = f'li.slot[data-key="{self.slot_id}"]'
        return page.locator(", ".join(f'{row}[data-state="{state}"]' for state in states) or row)

    def button(self, page: Page, *states: str) -> Locator:
        """Return the one action of the slot while it is in one of these states."""
        return self.row(page, *(states or OPEN_STATES)).locator(".act .btn").first


@dataclass
class Board:
    """The board of an app, and a browser that shows it."""

    browser: Browser
    http: httpx.AsyncClient
    app: AppProcess
    organizer: BookingClient
    errors: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)
    # What the first page of each of them stores.
    unstored: dict[BrowserContext, dict[str, str]] = field(default_factory=dict)
    storing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def student(self, name: str = "Mia", email: str = "") -> Student:
        """Register a student."""
        email = email or new_email()
        return await self._begin_session(REGISTER, name=name, email=email, password=PASSWORD)

    async def vouch_for(self, student: Student) -> None:
        """Let the organizer vouch for a student, who can get groups and a role then."""
        await self.organizer.execute(VOUCH, id=await student.fetch_user_id())

    async def teacher(self, name: str, resource: str) -> Student:
        """Register a member who leads a resource."""
        user = await self.student(name)
        await self.vouch_for(user)
        leader = await user.fetch_user_id()
        await self.organizer.execute(CREATE_LED, name=resource, leader=leader)
        return user

    async def colleague(self, name: str) -> Student:
        """Register a member who became an organizer."""
        user = await self.student(name)
        user_id = UserId((await user.fetch_user_id()).removeprefix("user_"))
        async with auth_for_database(self.app.environment["SLOTLOCK_MONGO_URL"]) as auth:
            await account_admin.set_role(auth, None, user_id, Role.ORGANIZER, vouches=True)
        return user

    async def admin(self) -> Student:
        """Sign in as the administrator."""
        return await self.sign_in(ADMIN_EMAIL, ADMIN_PASSWORD)

    async def sign_in(self, email: str, password: str = PASSWORD) -> Student:
        """Sign in on another device."""
        return await self._begin_session(LOGIN, email=email, password=password)

    async def _begin_session(self, document: str, **given: str) -> Student:
        user = Student(self.http, self.app.url)
        session = await user.execute(document, input=given)
        user.token, user.refresh_token = session["accessToken"], session["refreshToken"]
        return user

    async def course(self, opens_in_s: float = -3600, **fields: Any) -> Course:
        """Create a campaign with one slot of 12 places, which opened an hour ago by default."""
        opens_at = datetime.now(UTC) + timedelta(seconds=opens_in_s)
        campaign_id = await create_campaign(
            self.organizer, opensAt=opens_at.isoformat(), forbidOverlap=True
        )
        slot = {"title": "Chess", "capacity": 12, "location": "Room 1", **fields}
        return Course(campaign_id, await self.organizer.add_slot(campaignId=campaign_id, **slot))

    async def context(
        self, student: Student | None = None, url: str = "", **options: Any
    ) -> BrowserContext:
        """Open a browser of its own, in which the student is signed in."""
        origin, language = url or self.app.url, {"slotlock.language": "en"}
        context = await self.browser.new_context(base_url=origin, **{"locale": "en", **options})
        context.set_default_timeout(1000 * TIMEOUT_S)
        self.contexts.append(context)
        if student:
            self.unstored[context] = {**language, "slotlock.refreshToken": student.refresh_token}
        elif "locale" in options:
            self.unstored[context] = language
        return context

    async def new_page(self, context: BrowserContext) -> Page:
        """Open a page without an address; the first one of a browser stores who is signed in.

        The storage state of Playwright takes half a second of a core, for a page of its own.
        """
        page = await context.new_page()
        async with self.storing:  # or a second page may look before the first one has stored it
            if stored := self.unstored.pop(context, None):
                values = json.dumps([*stored.items()])
                script = f"for (const each of {values}) localStorage.setItem(...each)"

                async def store(route: Route) -> None:
                    body = f"<script>{script}</script>"
                    await route.fulfill(body=body, content_type="text/html")

                await page.route("**/stored", store)
                await page.goto("/stored")
                await page.unroute("**/stored")
        return page

    async def open(
        self, context: BrowserContext, address: str = "", before: str | None = None
    ) -> Page:
        """Open a page at an address of the board, after running this script in it."""
        page = await self.new_page(context)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self._note(message.type, message.text))
        if before:
            await page.add_init_script(before)
        await page.goto("/board" + address)
        await page.wait_for_selector("main h1")
        return page

    def _note(self, kind: str, text: str) -> None:
        # The browser itself reports each request without an answer and each refused socket.
        # What the browser says when a server does not respond: of a file, a socket or the worker.
        network = ("Failed to load resource", "WebSocket connection", "fetching the script")
        is_expected = any(each in text for each in network)
        if kind == "error" and not is_expected:
            self.errors.append(text)

    async def visit(self, student: Student, course: Course, **options: Any) -> Page:
        """Open the page of a course for a student."""
        return await self.open(await self.context(student, **options), course.address)


def shown(page: Page, text: str) -> Locator:
    """Return what the page shows with this text, without what it says to screen readers alone.

    Case matters: the button "Take it away" is not the button "Take away".
    """
    return page.get_by_text(re.compile(re.escape(text))).and_(page.locator(":not(#status)"))


async def sign_in(page: Page, student: Student) -> None:
    """Sign in on the page that asks for it."""
    email = (await student.execute("{ me { email } }"))["email"]
    await page.get_by_label("Email address").fill(email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()


def asks_for(request: Request, operation: str) -> bool:
    """Return whether this is a request for an operation, such as `bookSlot`."""
    is_named = f'"board/{operation}/' in (request.post_data or "")
    return request.url.endswith("/graphql") and is_named


async def change_script(context: BrowserContext, *changes: tuple[str, str]) -> None:
    """Let pages have other texts in their scripts, such as a shorter time.

    Each change is the text in the source of a module, and the one that comes in its place.
    """
    scripts = merged_modules(sent_modules(), START, alone=ALONE)
    changed = dict[str, str]()
    for before, after in changes:
        [name] = [name for name, script in scripts.items() if before in script]
        changed[name] = scripts[name] = scripts[name].replace(before, after)

    async def handle(route: Route) -> None:
        [script] = [each for name, each in changed.items() if route.request.url.endswith(name)]
        await route.fulfill(body=script, content_type="text/javascript")

    for name in changed:
        await context.route(f"**/{name}", handle)


async def serve_sources(page: Page) -> None:
    """Let a page import single modules from `/board/sources/`, as they are written."""
    files = board_files()

    async def handle(route: Route) -> None:
        name = route.request.url.partition("/sources/")[2]
        await route.fulfill(body=files[name], content_type="text/javascript")

    await page.route("**/sources/**", handle)


def sent_keys(page: Page, operation: str = "bookSlot") -> list[str]:
    """Return a list to which the idempotency key of each request to book is added."""
    keys: list[str] = []

    def note(request: Request) -> None:
        if asks_for(request, operation):
            variables = json.loads(request.post_data or "")["variables"]
            keys.append(variables["input"]["idempotencyKey"])

    page.on("request", note)
    return keys


async def before_each(
    pages: Page | BrowserContext, operation: str, act: Callable[[], Awaitable[object]]
) -> None:
    """Do something before the server gets a request for an operation."""

    async def handle(route: Route) -> None:
        if asks_for(route.request, operation):
            await act()
        await route.fallback()

    await pages.route("**/graphql", handle)


async def lose_first(page: Page, operation: str) -> asyncio.Event:
    """Let the server never get the first request for an operation. Return when it is sent."""
    is_sent = asyncio.Event()

    async def handle(route: Route) -> None:
        if not is_sent.is_set() and asks_for(route.request, operation):
            is_sent.set()
        else:
            await route.fallback()

    await page.route("**/graphql", handle)
    return is_sent


async def lose_first_answer(page: Page) -> None:
    """Let the server book, and lose its first answer on the way."""
    lost: list[Route] = []

    async def handle(route: Route) -> None:
        if lost or not asks_for(route.request, "bookSlot"):
            await route.fallback()
            return
        lost.append(route)
        await route.fetch()
        await route.abort()

    await page.route("**/graphql", handle)
