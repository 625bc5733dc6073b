"""What may go wrong under an open page, beyond the opening: see test_booking for that."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, WebSocketRoute, expect

from tests.support.apps.fork_server import forked_app
from tests.support.board.pages import (
    CREATE_USER,
    Board,
    Course,
    Student,
    asks_for,
    before_each,
    change_script,
    lose_first_answer,
    sent_keys,
    shown,
    sign_in,
)
from tests.support.polling import eventually
from tests.support.stores.users import new_email

pytestmark = pytest.mark.asyncio(loop_scope="module")

SET_ROLE = """mutation($user: ID!, $role: Role!) { setUserRole(userId: $user, role: $role) {
  __typename } }"""
# A browser stores about 5 million characters of a site, and a browser for guests none.
FILL_STORAGE = """for (const storage of [localStorage, sessionStorage])
  for (let size = 5 * 2 ** 20; size >= 1; size = Math.floor(size / 2))
    try {
      storage.setItem(`full ${size}`, "x".repeat(size));
    } catch {}"""
FORBID_STORAGE = """for (const name of ["localStorage", "sessionStorage"])
  Object.defineProperty(globalThis, name, {
    get() {
      throw new DOMException("storage is off", "SecurityError");
    },
  });"""

# What a program that reads mails makes of a link, with the token in place of T.
LINKS = ["%23/invitation/T", "#/invitation/T%", "#/invitation/T).", "#%2Finvitation%2FT?utm=1"]
LINKS.append("#%252Finvitation//T/")
NO_VIEWS = ["#/slot/%", "#/slot/%E0%A4%A", "#/campaign/).", "#/constructor", "#/__proto__/x"]
# Other values than a page stores, by the kind of its storage and by their keys.
STORED = ("session", "week", "stars"), ("pending", "back", "signIn.x")
BROKEN = ["{", "null", "5", '"x"', "[]", "{}", "USER"]


async def set_role(board: Board, user: Student, role: str) -> None:
    """Let an admin give a user another role."""
    user_id = await user.fetch_user_id()
    await board.vouch_for(user)
    await (await board.admin()).execute(SET_ROLE, user=user_id, role=role)


async def open_slot(board: Board, student: Student, course: Course) -> Page:
    """Open the page of one course."""
    return await board.open(await board.context(student), f"#/slot/{course.slot_id}")


async def test_the_first_page_leads_to_each_campaign(board: Board) -> None:
    course = await board.course()
    page = await board.open(await board.context())
    await page.locator(f'main a[href="{course.address}"]').wait_for()


async def test_a_page_that_is_opened_again_shows_its_list_before_the_session_is_refreshed(
    board: Board,
) -> None:
    student, course = await board.student(), await board.course()
    context, refresh = await board.context(student), asyncio.Event()
    page = await board.open(context, course.address)
    # Not wait_for_function: it evaluates text in the page, whose policy forbids that.
    stored = "Boolean(localStorage['slotlock.session'])"
    await eventually(lambda: page.evaluate(stored), "the session is stored")
    await page.close()
    await set_role(board, student, "ORGANIZER")
    await before_each(context, "refreshSession", refresh.wait)
    page = await board.open(context, course.address)
    await course.button(page).wait_for()
    await page.get_by_role("link", name="Mia").wait_for()
    organize = page.get_by_role("link", name="Organize")
    assert await organize.count() == 0
    refresh.set()
    await organize.wait_for()


async def test_a_sign_in_that_the_server_has_no_time_for_is_repeated_when_it_says(
    board: Board,
) -> None:
    student, course, refused = await board.student(), await board.course(), list[str]()
    page = await board.open(await board.context(), course.address)
    busy = {"__typename": "ServerBusy", "code": "SERVER_BUSY", "message": "", "retryAfterMs": 500}

    async def refuse_twice(route: Route) -> None:
        if len(refused) == 2 or not asks_for(route.request, "login"):
            await route.fallback()
            return
        await expect(shown(page, "it tries again by itself")).to_have_count(len(refused))
        refused.append(route.request.url)
        await route.fulfill(json={"data": {"login": busy}})

    await page.route("**/graphql", refuse_twice)
    await course.button(page).click()
    await sign_in(page, student)
    await course.button(page).wait_for()
    await page.get_by_role("link", name="Mia").wait_for()
    assert len(refused) == 2


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(FILL_STORAGE, id="full"),
        pytest.param(FORBID_STORAGE, id="forbidden"),
    ],
)
async def test_without_storage_one_signs_in_and_books_once(board: Board, fault: str) -> None:
    student, course = await board.student(), await board.course()
    page = await board.open(await board.context(), course.address, fault)
    keys = sent_keys(page)
    await lose_first_answer(page)
    await course.button(page).click()
    await sign_in(page, student)
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    assert len(keys) >= 2
    assert len(set(keys)) == 1
    assert (await student.fetch_slot(course.slot_id))["remaining"] == 11


async def test_without_storage_a_mailed_code_waits_for_the_sign_in(board: Board) -> None:
    student, address = await board.student(), f"#/account/{'0' * 64}"
    page = await board.open(await board.context(), address, FORBID_STORAGE)
    await page.get_by_role("main").get_by_role("link", name="Sign in").click()
    await sign_in(page, student)
    await page.get_by_role("button", name="Confirm").wait_for()


async def test_a_full_cache_costs_only_the_page_without_a_network(board: Board) -> None:
    student, course = await board.student(), await board.course()
    context = await board.context(student)

    await change_script(context, ("WORKER_AFTER_MS = 5000", "WORKER_AFTER_MS = 0"))
    page = await board.new_page(context)
    devtools = await context.new_cdp_session(page)
    quota = {"origin": board.app.url, "quotaSize": 1000}
    await devtools.send("Storage.overrideQuotaForOrigin", quota)
    async with context.expect_event("serviceworker"):
        await page.goto("/board" + course.address)
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    is_gone = "async () => !(await navigator.serviceWorker.getRegistration())"
    await eventually(lambda: page.evaluate(is_gone), "the worker is gone")


async def test_a_token_that_ended_is_renewed_and_the_click_counts_once(board: Board) -> None:
    student, course = await board.student(), await board.course()
    page = await board.visit(student, course)
    keys = sent_keys(page)

    async def end_token(route: Route) -> None:
        headers = route.request.headers
        if len(keys) == 1 and asks_for(route.request, "bookSlot"):
            headers = {**headers, "authorization": "Bearer ended"}
        await route.fallback(headers=headers)

    await page.route("**/graphql", end_token)
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    assert len(keys) == 2
    assert len(set(keys)) == 1


async def test_a_page_without_a_socket_whose_first_reads_fail_reads_again(board: Board) -> None:
    student, course = await board.student(), await board.course()
    context = await board.context(student)
    failed = set[str]()

    async def fail_first(route: Route) -> None:
        for operation in {"campaign", "slotsOfCampaign"} - failed:
            if asks_for(route.request, operation):
                failed.add(operation)
                await route.fulfill(json={"errors": [{"extensions": {"code": "INTERNAL"}}]})
                return
        await route.fallback()

    await context.route("**/graphql", fail_first)
    await context.route_web_socket("**/graphql", lambda socket: socket.close())
    page = await board.open(context, course.address)
    await course.button(page).wait_for()
    assert failed == {"campaign", "slotsOfCampaign"}


async def test_what_changed_while_the_first_socket_failed_is_read(board: Board) -> None:
    student, course = await board.student(), await board.course()
    context = await board.context(student)
    booked, sockets = asyncio.Event(), list[WebSocketRoute]()

    async def fail_first(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        if len(sockets) == 1:
            await socket.close()
            return
        await booked.wait()
        socket.connect_to_server()

    await context.route_web_socket("**/graphql", fail_first)
    page = await board.open(context, course.address)
    await course.button(page).wait_for()
    await student.book_slot(course.slot_id)
    booked.set()
    await course.row(page, "yours").wait_for()


async def test_a_new_role_changes_tabs_and_views_without_a_reload(board: Board) -> None:
    user, course = await board.student("Ms Keller"), await board.course()
    page = await board.open(await board.context(user), f"#/course/{course.slot_id}")
    tab = page.get_by_role("link", name="Organize")
    await shown(page, "This is for organizers.").wait_for()
    await page.locator("nav a[href='#/']").click()
    await page.locator(".live:not(.stale)").wait_for()
    await set_role(board, user, "ORGANIZER")
    await tab.wait_for()
    await page.go_back()
    await page.get_by_role("heading", name="Chess").wait_for()
    await set_role(board, user, "MEMBER")
    await shown(page, "This is for organizers.").wait_for()
    await expect(tab).to_have_count(0)


async def test_a_refused_operation_says_that_the_role_was_taken(board: Board) -> None:
    user = await board.student("Ms Keller")
    await set_role(board, user, "ORGANIZER")
    context = await board.context(user)

    async def refuse(socket: WebSocketRoute) -> None:
        await socket.close()

    await context.route_web_socket("**/graphql", refuse)
    page = await board.open(context, "#/organizer")
    await page.get_by_role("link", name="People").click()
    await page.get_by_role("link", name="New person").click()
    await page.get_by_label("Name", exact=True).fill("Ada")
    await set_role(board, user, "MEMBER")
    await page.get_by_role("button", name="Create").click()
    await shown(page, "This is for organizers.").wait_for()
    await expect(page.get_by_role("link", name="Organize")).to_have_count(0)


async def test_a_link_that_a_program_damaged_still_opens_the_form(board: Board) -> None:
    created = await board.organizer.execute(
        CREATE_USER, input={"name": "Ada", "email": new_email()}
    )
    context = await board.context()
    for link in LINKS:
        page = await board.open(context, link.replace("T", created["invitationToken"]))
        await shown(page, "Ada").wait_for()
        await page.get_by_label("New password").wait_for()
        assert page.url.endswith("/board#/invitation")
        await page.close()
    page = await board.open(context, LINKS[1].replace("T", created["invitationToken"][:-1]))
    await shown(page, "This link or code was used before").wait_for()


async def test_a_link_to_what_is_not_there_breaks_no_page(board: Board) -> None:
    page = await board.open(await board.context())
    for link in NO_VIEWS:
        await page.goto(f"/board{link}")
        name = "Courses" if "_" in link or "con" in link else "nothing here"
        await page.locator("main").get_by_text(name).first.wait_for()


async def test_values_that_no_page_stores_break_no_page(board: Board) -> None:
    student, course = await board.student(), await board.course()
    page = await board.open(await board.context(student), course.address)
    user = await student.fetch_user_id()
    whole = json.dumps({"user": user, "requests": {"x": None}, "codes": {}, "bookings": [{}]})
    for value in BROKEN:
        for kind, keys in zip(("localStorage", "sessionStorage"), STORED, strict=True):
            for key in keys:
                given = [f"slotlock.{key}", value.replace("USER", whole)]
                await page.evaluate(f"([key, value]) => {kind}.setItem(key, value)", given)
        for address, text in ((course.address, "12 of 12 free"), ("#/week", "My week")):
            await page.goto(f"/board{address}")
            await page.reload()
            await page.locator("main").get_by_text(text).wait_for()
            await expect(page.locator("header .me")).to_have_text("Mia")


async def test_a_dark_page_is_printed_in_dark_letters_on_white(board: Board) -> None:
    course = await board.course()
    page = await board.open(await board.context(), course.address)
    await course.row(page).wait_for()
    color = "selector => getComputedStyle(document.querySelector(selector)).color"
    for scheme in ("system", "dark"):
        await page.evaluate(
            "scheme => { document.documentElement.dataset.scheme = scheme }", scheme
        )
        dark = {}
        for media in ("screen", "print"):
            await page.emulate_media(media=media, color_scheme="dark")
            dark[media] = [
                max(map(int, re.findall(r"\d+", await page.evaluate(color, each)))) < 128
                for each in ("h1", ".slot .what", ".slot .left")
            ]
        assert dark == {"screen": [False] * 3, "print": [True] * 3}, scheme


async def test_a_slot_that_is_cancelled_while_the_page_asks_says_so(board: Board) -> None:
    student, course = await board.student(), await board.course()
    await student.book_slot(course.slot_id)
    page = await open_slot(board, student, course)
    await page.get_by_role("button", name="Give back: Chess", exact=True).click()
    question = page.get_by_role("group", name="Give back Chess?")
    await question.wait_for()
    await board.organizer.cancel_slot(course.slot_id)
    await shown(page, "Does not take place").wait_for()
    await expect(question).to_have_count(0)


async def test_a_hold_outlives_a_reload_and_its_end_is_announced(board: Board) -> None:
    student, course = await board.student(), await board.course(holdMinutes=5)
    held_until = datetime.fromisoformat((await student.hold(course.slot_id))["heldUntil"])
    context = await board.context(student)
    await context.clock.install()
    page = await board.open(context, course.address)
    await course.row(page, "held").wait_for()
    await page.reload()
    await course.row(page, "held").wait_for()
    # A connection that opens late would measure the true time again.
    await page.locator(".live:not(.stale)").wait_for()
    status = page.locator("#status")
    # To two minutes before the end, and to half a minute: the end comes nearer by itself, too.
    first = held_until - datetime.now(UTC) - timedelta(minutes=2)
    await context.clock.fast_forward(round(1000 * first.total_seconds()))
    await expect(status).to_contain_text("Chess is reserved for you for 2 more minutes.")
    second = held_until - datetime.now(UTC) - first - timedelta(seconds=30)
    await context.clock.fast_forward(round(1000 * second.total_seconds()))
    await expect(status).to_contain_text(re.compile(r"for (30|2\d) more seconds\."))
    await page.get_by_role("button", name="Confirm: Chess", exact=True).click()
    await course.row(page, "yours").wait_for()


async def test_back_and_a_network_that_returns_show_what_is_true_now(board: Board) -> None:
    student, other = await board.student(), await board.student("Jonas")
    course = await board.course()
    page = await board.visit(student, course)
    await page.get_by_role("link", name="Chess", exact=True).click()
    await page.get_by_role("heading", level=1, name="Chess").wait_for()
    await other.book_slot(course.slot_id)
    await page.go_back()
    await course.row(page).get_by_text("11 of 12 free").wait_for()
    await page.locator(".live:not(.stale)").wait_for()
    await page.context.set_offline(True)
    await shown(page, "No connection since").wait_for()
    await student.book_slot(course.slot_id)
    await page.context.set_offline(False)
    await course.row(page, "yours").wait_for()
    await page.locator(".live:not(.stale)").wait_for()


async def test_an_error_of_the_page_has_an_id_that_is_in_the_log(
    board: Board, log_dir: Path
) -> None:
    environment = {**board.app.environment, "SLOTLOCK_BOARD_ERRORS": "on"}
    with forked_app(environment, log_dir) as app:
        page = await board.open(await board.context(url=app.url))
        await page.wait_for_load_state("networkidle")
        await page.evaluate("setTimeout(() => { throw new Error('a defect'); })")
        notice = shown(page, "This page failed")
        found = re.search(r"\((\w+)\)", await notice.inner_text())
        assert found is not None

        async def is_logged() -> bool:
            return f"{found[1]} in" in app.log and "a defect" in app.log

        await eventually(is_logged, "the error is in the log")
    board.errors.clear()  # the error is the test
