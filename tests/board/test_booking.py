"""A student books with the board, in a real browser: the opening, and what may go wrong then."""

import asyncio
from datetime import datetime
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Request, Route, WebSocketRoute, expect

from bench.board.opening import WRONG_CLOCK, wrong_clock
from tests.support.apps.fork_server import forked_app
from tests.support.board.pages import (
    GUARDED,
    NOTE_SAYINGS,
    Board,
    Student,
    asks_for,
    before_each,
    change_script,
    lose_first,
    lose_first_answer,
    sent_keys,
    serve_sources,
    shown,
)
from tests.support.stores.users import new_email
from tests.support.transport.delay_proxy import delay_proxy

pytestmark = pytest.mark.asyncio(loop_scope="module")

# A busy machine draws late. A page that follows the device's clock is ten minutes late or early.
MAX_LATE_MS = 30_000
SAY = """async (language) => {
  const text = await import("/board/sources/text.js");
  const { chooseLanguage, durationOf, problemText, t, zoneName, zoneText } = text;
  await chooseLanguage(language);
  await text.loadTextsOfOrganizers();
  const values = [{ name: "time", value: "2031-05-05 15:00:00 Europe/Berlin" }];
  return [
    t("account.invitation", { by: "王老师", name: "象棋 二班" }),
    t("account.invitation", { by: "Ms Lee", name: "Chess" }),
    t("state.waitingCount", { count: 1 }),
    t("slotForm.weeks", { count: 1 }),
    t("refusal.BANNED"),
    t("open.in", { time: durationOf(70 / 60) }),
    zoneName("Europe/Berlin"),
    zoneText("UTC"),
    problemText({ code: "IN_PAST", values }),
  ];
}"""
SAID = {
    "en": [
        "王老师 invites you to the team 象棋 二班.",
        "Ms Lee invites you to the team Chess.",
        " · 1 waiting",
        "Every week",
        "This account is blocked. Ask slotlock.",
        "Opens in 1 minute and 10 seconds",
        "Central European Time",
        "Time zone: UTC; your device is 5 hours and 30 minutes ahead",
        "This lies in the past: Monday, May 5, 2031, 15:00.",
    ],
    "de": [
        "王老师 lädt dich in das Team 象棋 二班 ein.",
        "Ms Lee lädt dich in das Team Chess ein.",
        " · 1 wartet",
        "Jede Woche",
        "Dieses Konto ist gesperrt. Bitte bei slotlock fragen.",
        "Öffnet in 1 Minute und 10 Sekunden",
        "Mitteleuropäische Zeit",
        "Zeitzone: UTC; dieses Gerät ist 5 Stunden und 30 Minuten voraus",
        "Das liegt in der Vergangenheit: Montag, 5. Mai 2031, 15:00 Uhr.",
    ],
    "zh": [
        "王老师邀请你加入团队“象棋 二班”。",
        "Ms Lee 邀请你加入团队“Chess”。",
        " · 1 人候补",
        "每周",
        "这个账号已停用，请联系 slotlock。",  # noqa: RUF001
        "1分钟10秒钟后开放",
        "中欧时间",
        "时区：UTC，此设备快5小时30分钟",  # noqa: RUF001
        "这个时间已经过去：2031年5月5日星期一 15:00。",  # noqa: RUF001
    ],
}


async def test_the_button_appears_by_itself_at_the_instant_of_the_server(board: Board) -> None:
    students = [await board.student(), await board.student("Jonas")]
    course = await board.course(opens_in_s=6)
    campaign = await board.organizer.execute(
        "query($id: ID!) { campaign(id: $id) { opensAt } }", id=course.campaign_id
    )
    opens_at = datetime.fromisoformat(campaign["opensAt"]).timestamp() * 1000

    async def book_with_wrong_clock(number: int, student: Student) -> None:
        context = await board.context(student)
        page = await board.open(context, course.address, wrong_clock(number))
        keys = sent_keys(page)
        await course.button(page).click()
        await course.row(page, "yours").wait_for()
        late_ms = await page.evaluate("openedAt") - opens_at
        assert 0 <= late_ms <= MAX_LATE_MS
        assert len(keys) == 1

    await asyncio.gather(*map(book_with_wrong_clock, range(2), students))
    assert (await board.organizer.fetch_slot(course.slot_id))["remaining"] == 10


async def test_a_language_fills_its_texts_in_by_its_own_rules(board: Board) -> None:
    page = await board.open(await board.context(timezone_id="Asia/Kolkata"))
    await serve_sources(page)
    for language, said in SAID.items():
        assert await page.evaluate(SAY, language) == said


async def test_a_device_that_is_ahead_opens_no_course_before_it_knows_the_time_of_the_server(
    board: Board,
) -> None:
    student, course = await board.student(), await board.course(opens_in_s=300)
    context = await board.context(student)

    async def lose_campaign(route: Route) -> None:
        if not asks_for(route.request, "campaign"):
            await route.fallback()

    await context.route("**/graphql", lose_campaign)  # it comes over the socket
    page = await board.open(context, course.address, wrong_clock(0))
    await course.row(page, "soon").wait_for()
    assert not await page.evaluate("globalThis.openedAt")


async def test_a_lost_answer_is_asked_for_again_with_the_same_key(board: Board) -> None:
    student, course = await board.student(), await board.course()
    page = await board.visit(student, course)
    keys = sent_keys(page)
    await lose_first_answer(page)
    await course.button(page).dblclick()
    await course.row(page, "yours").wait_for()
    assert len(keys) >= 2
    assert len(set(keys)) == 1
    assert (await student.fetch_slot(course.slot_id))["remaining"] == 11


async def test_a_reload_while_it_is_decided_asks_again_with_the_same_key(board: Board) -> None:
    student, course = await board.student(), await board.course()
    page = await board.visit(student, course)
    keys, lost = sent_keys(page), await lose_first(page, "bookSlot")
    await course.button(page).click()
    await expect(course.button(page, "deciding")).to_have_attribute("aria-disabled", "true")
    await lost.wait()
    await page.reload()
    await course.row(page, "yours").wait_for()
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert (await student.fetch_slot(course.slot_id))["remaining"] == 11


async def test_two_tabs_share_the_session_and_show_the_same_booking(board: Board) -> None:
    student, course = await board.student(), await board.course()
    context = await board.context(student)
    pages = await asyncio.gather(*(board.open(context, course.address) for _ in range(2)))
    for page in pages:
        await expect(page.locator(".live:not(.stale)")).to_be_visible()
    await course.button(pages[0]).click()
    for page in pages:
        await course.row(page, "yours").wait_for()
    assert (await student.fetch_slot(course.slot_id))["remaining"] == 11


async def test_two_devices_of_a_user_show_the_same_booking(board: Board) -> None:
    email, course = new_email(), await board.course()
    devices = [await board.student(email=email), await board.sign_in(email)]
    pages = [await board.visit(device, course) for device in devices]
    for page in pages:
        await expect(page.locator(".live:not(.stale)")).to_be_visible()
    await course.button(pages[0]).click()
    for page in pages:
        await course.row(page, "yours").wait_for()


async def test_a_row_says_that_the_last_place_went_to_somebody_else(board: Board) -> None:
    student, other = await board.student(), await board.student("Jonas")
    course = await board.course(capacity=1)
    page = await board.visit(student, course)
    await before_each(page, "bookSlot", lambda: other.book_slot(course.slot_id))
    await course.button(page).click()
    lost = course.row(page, "full").get_by_text("The last place went to somebody else.")
    await lost.wait_for()
    await expect(page.locator("#status")).to_contain_text("Chess")


async def test_a_read_that_arrives_late_does_not_undo_a_newer_event(board: Board) -> None:
    student, other = await board.student(), await board.student("Jonas")
    course = await board.course()
    context = await board.context(student)
    page = await board.open(context, course.address, "Math.random = () => 0")
    await page.locator(".live:not(.stale)").wait_for()
    was_read, was_shown = asyncio.Event(), asyncio.Event()

    async def arrive_late(route: Route) -> None:
        if not asks_for(route.request, "slotsOfCampaign"):
            await route.fallback()
            return
        response = await route.fetch()
        was_read.set()
        await was_shown.wait()
        await route.fulfill(response=response)

    await page.route("**/graphql", arrive_late)
    await board.organizer.add_slot(campaignId=course.campaign_id, title="Go")
    await was_read.wait()
    await other.book_slot(course.slot_id)
    left = course.row(page).locator(".left")
    await expect(left).to_contain_text("11 of 12 free")
    was_shown.set()
    await shown(page, "Go").first.wait_for()
    await expect(left).to_contain_text("11 of 12 free")


@pytest.mark.parametrize("is_guarded", GUARDED)
async def test_an_older_state_of_a_slot_that_arrives_late_changes_nothing(
    board: Board, is_guarded: bool
) -> None:
    others, course = [await board.student() for _ in range(2)], await board.course()
    marker = await board.organizer.add_slot(campaignId=course.campaign_id, title="Go")
    context, sockets, older = await board.context(), list[WebSocketRoute](), list[str]()
    if not is_guarded:
        await change_script(context, ("|| state.version < slot.version", ""))

    async def note(socket: WebSocketRoute) -> None:
        sockets.append(socket)

        def forward(message: str | bytes) -> None:
            if course.slot_id in str(message) and '"remaining":11' in str(message):
                older.append(str(message))
            socket.send(message)

        socket.connect_to_server().on_message(forward)

    await context.route_web_socket("**/graphql", note)
    page = await board.open(context, course.address)
    await page.locator(".live:not(.stale)").wait_for()
    left = course.row(page).locator(".left")
    for free, other in zip((11, 10), others, strict=True):
        await other.book_slot(course.slot_id)
        await expect(left).to_contain_text(f"{free} of 12 free")
    sockets[-1].send(older[0])
    # What comes after it is shown, so it was read.
    await board.organizer.update_slot(marker, capacity=7)
    await expect(page.locator(f'[data-key="{marker}"] .left')).to_contain_text("7 of 7 free")
    await expect(left).to_contain_text("10 of 12 free" if is_guarded else "11 of 12 free")


@pytest.mark.parametrize("is_guarded", GUARDED)
async def test_on_a_device_an_hour_ahead_a_hold_still_has_its_button(
    board: Board, is_guarded: bool
) -> None:
    student, course = await board.student(), await board.course(holdMinutes=5)
    await student.hold(course.slot_id)
    context = await board.context(student)
    guard = "Date.parse(booking.heldUntil) > now()"
    if not is_guarded:
        await change_script(context, (guard, guard.replace("now", "Date.now")))
    page = await board.open(context, course.address, WRONG_CLOCK.replace("AHEAD_MS", "3_600_000"))
    if is_guarded:
        await page.get_by_role("button", name="Confirm: Chess", exact=True).click()
        await course.row(page, "yours").wait_for()
    else:
        await page.locator(".live:not(.stale)").wait_for()
        await course.row(page, "open").wait_for()


async def test_who_waits_in_line_gets_the_place_that_is_given_back(board: Board) -> None:
    student, other = await board.student(), await board.student("Jonas")
    course = await board.course(capacity=1, waitlistCapacity=5)
    booking = (await other.book_slot(course.slot_id))["booking"]
    page = await board.visit(student, course)
    await course.button(page, "full").click()
    await course.row(page, "waiting").get_by_text("You are 1st on the waiting list").wait_for()
    await other.cancel_booking(booking["id"])
    await course.row(page, "yours").wait_for()


async def test_a_session_that_ended_elsewhere_ends_on_the_page(board: Board) -> None:
    student, course = await board.student(), await board.course()
    page = await board.visit(student, course)
    await page.locator(".live:not(.stale)").wait_for()
    assert await student.execute("mutation { logout }")
    await page.locator('nav a[href="#/signin"]').wait_for()
    assert await page.evaluate('localStorage.getItem("slotlock.refreshToken")') is None


async def test_a_page_stays_true_while_the_server_dies_and_another_one_starts(
    board: Board, log_dir: Path
) -> None:
    student, course = await board.student(), await board.course()
    environment = board.app.environment
    with forked_app(environment, log_dir / "first") as first:
        async with delay_proxy(httpx.URL(first.url).port or 0) as proxy:
            context = await board.context(student, url=f"http://127.0.0.1:{proxy.port}")
            page = await board.open(context, course.address)
            keys = sent_keys(page)
            await page.locator(".live:not(.stale)").wait_for()
            first.kill()
            await page.locator(".live.stale").wait_for()
            await course.button(page).click()
            await course.row(page, "lost").get_by_text("No connection").wait_for()
            with forked_app(environment, log_dir / "second") as second:
                proxy.target_port = httpx.URL(second.url).port or 0
                await course.row(page, "yours").wait_for()
    assert len(set(keys)) == 1
    assert (await student.fetch_slot(course.slot_id))["remaining"] == 11


async def test_a_page_whose_sockets_are_refused_reads_again(board: Board) -> None:
    student, other = await board.student(), await board.student("Jonas")
    course = await board.course()
    context = await board.context(student)

    async def refuse(socket: WebSocketRoute) -> None:
        await socket.close()

    await context.route_web_socket("**/graphql", refuse)
    await change_script(context, ("[10_000, 10_000]", "[200, 200]"), ("500 * 2 **", "50 * 1 **"))
    page = await board.open(context, course.address)
    await shown(page, "Updated every 15 s").wait_for()
    await other.book_slot(course.slot_id)
    await course.row(page).get_by_text("11 of 12 free").wait_for()


@pytest.mark.parametrize(
    ("view", "operation", "reads"),
    [("campaign", "slotsOfCampaign", 1), ("slot", "slot", 2), ("week", "myWeek", 1)],
)
async def test_only_a_change_of_the_position_that_is_shown_is_said_and_read_where_more_changes(
    board: Board, view: str, operation: str, reads: int
) -> None:
    student, first, second = [await board.student(name) for name in ("Mia", "Jonas", "Ada")]
    course = await board.course(capacity=1, waitlistCapacity=5)
    await second.book_slot(course.slot_id)
    await first.join(course.slot_id)
    await student.join(course.slot_id)
    context, sent = await board.context(student), list[Request]()
    context.on("request", lambda each: sent.append(each) if asks_for(each, operation) else None)
    is_shown, is_known = asyncio.Event(), asyncio.Event()

    async def arrive_late(socket: WebSocketRoute) -> None:
        await is_shown.wait()
        server = socket.connect_to_server()

        def forward(message: str | bytes) -> None:
            socket.send(message)
            if '"position":2' in str(message):
                is_known.set()

        server.on_message(forward)

    await context.route_web_socket("**/graphql", arrive_late)
    addresses = {"campaign": course.address, "slot": f"#/slot/{course.slot_id}", "week": "#/week"}
    page = await board.open(context, addresses[view], NOTE_SAYINGS)
    await page.locator("main").get_by_text("2nd").first.wait_for()
    is_shown.set()
    await is_known.wait()
    await first.leave(course.slot_id)
    await page.locator("main").get_by_text("1st").first.wait_for()
    await expect(page.locator("#status")).to_contain_text("1st")
    assert await page.evaluate("sayings") == ["Chess: You are 1st on the waiting list"]
    assert len(sent) == reads


async def test_names_and_titles_full_of_markup_are_shown_as_text(board: Board) -> None:
    markup = '<img src=x onerror="globalThis.hacked = 1"><b>bold</b>'
    student = await board.student(markup)
    course = await board.course(title=markup, location=markup)
    page = await board.visit(student, course)
    await course.row(page).get_by_role("heading", name=markup).wait_for()
    await expect(page.locator("header .me")).to_have_text(markup)
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    assert await page.locator("img, b b").count() == 0
    assert await page.evaluate("globalThis.hacked") is None


async def test_the_keyboard_alone_books_a_course(board: Board) -> None:
    student, course = await board.student(), await board.course()
    page = await board.visit(student, course)
    book = page.get_by_role("button", name="Book: Chess", exact=True)
    await book.wait_for()
    for _ in range(30):
        await page.keyboard.press("Tab")
        if await book.evaluate("each => each === document.activeElement"):
            break
    await page.keyboard.press("Enter")
    await course.row(page, "yours").wait_for()
    focused_row = page.locator("li.slot:focus-within")
    await expect(focused_row).to_have_attribute("data-key", course.slot_id)
