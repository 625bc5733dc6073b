"""One opening for pages of the board and for simulated clients at once."""

import asyncio
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Request, WebSocket

from bench.accounts import create_accounts
from bench.board.opening import ATTEMPTS, rush, wrong_clock
from slotlock.simulation.model.attempts import SimulatedSlot
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import SECRET
from tests.support.board.pages import Board, Course, Student, change_script, sent_keys
from tests.support.clients.campaigns import create_campaign
from tests.support.polling import eventually, poll_until
from tests.support.stores.users import create_user_tokens

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGES, USERS, COURSES, PLACES = 30, 300, 5, 12
# The other pages read.
SOCKETS = 20
PAGES_AT_ONCE = 4
# All pages show the courses by then: a busy machine gets three times the time of opening them.
OPENS_IN_S = 30
# Everybody clicks on two courses at the instant of the opening; one is allowed.
CLICK_TWO = """new MutationObserver((_, observer) => {
  const buttons = document.querySelectorAll(":is([data-state=open], [data-state=almost]) .btn");
  if (buttons.length < 2) return;
  observer.disconnect();
  for (const each of [NUMBER, NUMBER + 1]) buttons[each % buttons.length].click();
}).observe(document, { childList: true, subtree: true });"""
UNDECIDED = ".slot[data-state=deciding], .slot[data-state=lost], .slot[data-state=soon]"


async def untrue_states(page: Page, truth: dict[Course, Any]) -> list[str]:
    """Return what the page shows of each course that is not as it is for its student."""
    untrue = []
    for course, slot in truth.items():
        state = await course.row(page).get_attribute("data-state")
        free_but_full = state in ("open", "almost") and not slot["remaining"]
        if (state == "yours") != (slot["myBooking"] is not None) or free_but_full:
            live = await page.locator(".live").inner_text()
            untrue.append(f"{state} ({live}): {slot}")
    return untrue


@pytest.mark.timeout(600)
async def test_nobody_has_two_places_and_every_page_ends_in_a_true_state(
    board: Board, log_dir: Path
) -> None:
    """Let 30 pages and 300 clients book. All devices have wrong clocks, ten pages no socket."""
    limited = {"SLOTLOCK_STREAMS_PER_ADDRESS": str(SOCKETS)}
    with forked_app({**board.app.environment, **limited}, log_dir) as app:
        here = replace(board, app=app)
        students = await create_students(here)
        limit = asyncio.Semaphore(PAGES_AT_ONCE)

        async def visit(number: int) -> Page:
            async with limit:
                script = wrong_clock(number) + CLICK_TWO.replace("NUMBER", str(number))
                context = await here.context(students[number], reduced_motion="reduce")
                return await here.open(context, "", script)

        started_at = time.monotonic()
        pages = await asyncio.gather(*map(visit, range(PAGES)))
        visited_in_s = time.monotonic() - started_at
        keys = [sent_keys(page) for page in pages]
        opens_at, courses = await create_courses(here, max(OPENS_IN_S, 3 * visited_in_s))
        slots = [SimulatedSlot(course.slot_id, course.slot_id) for course in courses]
        tokens = create_user_tokens(app.environment, USERS).members
        running = asyncio.create_task(rush(app.url, tokens, slots, opens_at))
        for page in pages:
            await page.evaluate("address => { location.hash = address }", courses[0].address)
        for page in pages:
            await page.locator(".slot").nth(COURSES - 1).wait_for()
        assert datetime.now(UTC) < opens_at
        log = await running
        assert log.answered_count == ATTEMPTS * USERS
        for page in pages:
            await page.locator(UNDECIDED).first.wait_for(state="detached")
            opened_at = await page.evaluate("globalThis.openedAt ?? Infinity")
            assert opened_at >= opens_at.timestamp() * 1000
        # A page that draws late finds fewer than two courses open, and clicks on none.
        assert {len(set(each)) for each in keys} <= {0, 2}
        assert any(keys)
        assert await places_by_owner(here, courses) == {1: COURSES * PLACES}
        for page, student in zip(pages, students, strict=True):
            truth = {course: await student.fetch_slot(course.slot_id) for course in courses}
            await poll_until(
                lambda page=page, truth=truth: untrue_states(page, truth),  # type: ignore[misc]
                lambda untrue: not untrue,
                "the page shows the truth",
            )
        await eventually(lambda: states_of(pages), "the other pages read")


async def create_students(board: Board) -> list[Student]:
    """Create a student for each page, without hashing passwords."""
    students = []
    for account in await create_accounts(
        board.app.environment["SLOTLOCK_MONGO_URL"], SECRET, PAGES
    ):
        student = Student(board.http, board.app.url)
        student.token, student.refresh_token = account.token, account.refresh_token
        students.append(student)
    return students


async def create_courses(board: Board, opens_in_s: float) -> tuple[datetime, list[Course]]:
    """Create courses in a campaign of one booking each, and return its opening and them."""
    opens_at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=opens_in_s)
    campaign_id = await create_campaign(
        board.organizer, opensAt=opens_at.isoformat(), maxBookings=1
    )
    fields: dict[str, Any] = {"campaignId": campaign_id, "capacity": PLACES}
    ids = [
        await board.organizer.add_slot(title=f"Course {number}", **fields)
        for number in range(COURSES)
    ]
    return opens_at, [Course(campaign_id, each) for each in ids]


async def places_by_owner(board: Board, courses: list[Course]) -> dict[int, int]:
    """Return how many users have how many places."""
    owners: Counter[str] = Counter()
    for course in courses:
        roster = await board.organizer.execute(
            "query($id: ID!) { slotRoster(slotId: $id, first: 100) { nodes { user { id } } } }",
            id=course.slot_id,
        )
        owners.update(booking["user"]["id"] for booking in roster["nodes"])
    return dict(Counter(owners.values()))


async def states_of(pages: list[Page]) -> bool:
    """Return whether as many pages as may are live, and the others say that they read."""
    texts = Counter([await page.locator(".live").inner_text() for page in pages])
    return texts == {"Live": SOCKETS, "Updated every 15 s": PAGES - SOCKETS}


async def test_a_page_at_rest_costs_the_server_only_its_socket(board: Board) -> None:
    student, course = await board.student(), await board.course()
    context = await board.context(student)
    await change_script(context, ("SILENT_MS = 40_000", "SILENT_MS = 200"))
    page = await board.open(context, "#/account")  # which has no socket yet
    sockets: list[WebSocket] = []
    page.on("websocket", lambda socket: sockets.append(socket))  # noqa: PLW0108  (sets attributes)
    await page.evaluate("address => { location.hash = address }", course.address)
    await course.button(page).wait_for()
    await page.locator(".live:not(.stale)").wait_for()
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))  # noqa: PLW0108
    for _ in range(5):
        sent = await sockets[0].wait_for_event("framesent")
        assert sent == '{"type":"ping"}'
    assert [request.url for request in requests if request.method == "POST"] == []
    assert len(sockets) == 1
    await page.locator(".live:not(.stale)").wait_for()
