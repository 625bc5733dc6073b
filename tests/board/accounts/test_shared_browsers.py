"""Several users of one browser: no page sends or shows what belongs to another one."""

import asyncio

import pytest
from playwright.async_api import Page, Route, WebSocket, expect

from tests.support.board.pages import (
    GUARDED,
    Board,
    Course,
    Student,
    asks_for,
    change_script,
    sent_keys,
    shown,
    sign_in,
)
from tests.support.clients.client import hours_from_now, times_in
from tests.support.polling import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIGURE = "mutation($input: ConfigureDrawInput!) { configureDraw(input: $input) { __typename } }"
MY_WISHES = "query($id: ID!) { myWishes(campaignId: $id) { userIds } }"
ROSTER = "query($id: ID!) { slotRoster(slotId: $id) { nodes { attendance } } }"
SESSIONS = "{ mySessions { id } }"
# A browser tells a page in the background late what other tabs store.
MISS_STORAGE = "addEventListener('storage', (event) => event.stopImmediatePropagation())"
# Guards of the page, and the page without them.
SAME_USER = "if (id && (newcomer || me?.id !== id))", "if (false)"
ADOPTS = "if (me === shown && (!me || !session || me.id === session.user.id))", "if (true)"
NOBODY_BETWEEN = "if (me && session && me.id !== session.user.id) adopt(null);", ""
OWNER = "post(name, variables, token), id)", "post(name, variables, token))"
OWNER_OF_WISHES = "if (owner !== me?.id) return;", ""
SAME_LOOP = " || (id && me?.id !== id)", ""
OTHER_SOCKET = "if (usedBy === me?.id) return;", "if (usedBy) return;"
OWN_REQUESTS = "user === me?.id && Object", "Object"
STAYS_OPEN = "wanted.size === 0 && close(), 2000", "wanted.size === 0 && close(), 60_000"


async def parent_and_child(board: Board) -> tuple[Student, Student, Course]:
    """Register both, and create a course."""
    return await board.student("Vera"), await board.student("Mia"), await board.course()


async def show(page: Page, address: str) -> None:
    """Go to another view of the same page."""
    await page.evaluate("address => { location.hash = address }", address)


async def sign_in_in_another_tab(
    board: Board, page: Page, student: Student, name: str = "Mia"
) -> None:
    """Sign in as somebody else in a tab of its own, and come back."""
    other = await board.open(page.context, "#/signin")
    await sign_in(other, student)
    await expect(other.locator("header .me")).to_have_text(name)
    await page.bring_to_front()


async def hold(
    page: Page, operation: str, *, ends: bool = False
) -> tuple[asyncio.Event, asyncio.Event]:
    """Hold the first such request: the events that it is sent, and that it goes on.

    Its token `ends` meanwhile.
    """
    is_sent, goes_on = asyncio.Event(), asyncio.Event()

    async def handle(route: Route) -> None:
        headers = route.request.headers
        if not is_sent.is_set() and asks_for(route.request, operation):
            is_sent.set()
            await goes_on.wait()
            headers = {**headers, **({"authorization": "Bearer ended"} if ends else {})}
        await route.fallback(headers=headers)

    await page.route("**/graphql", handle)
    return is_sent, goes_on


async def remaining(board: Board, course: Course) -> int:
    return int((await board.organizer.fetch_slot(course.slot_id))["remaining"])


async def has_place(student: Student, course: Course) -> bool:
    return (await student.fetch_slot(course.slot_id))["myBooking"] is not None


async def test_after_somebody_signed_in_in_another_tab_a_page_asks_and_sends_nothing(
    board: Board,
) -> None:
    parent, child, course = await parent_and_child(board)
    context = await board.context(parent)
    page = await board.open(context, course.address, MISS_STORAGE)
    keys = sent_keys(page)
    await course.button(page).wait_for()
    await sign_in_in_another_tab(board, page, child)
    await expect(page.locator("header .me")).to_have_text("Vera")
    await course.button(page).click()
    await course.row(page, "closed").get_by_text("Nothing was sent").wait_for()
    await shown(page, "Mia is signed in in this browser now.").wait_for()
    assert keys == []
    # The session of the parent ends, and that of the child stays.
    await show(page, "#/account")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await page.locator('nav a[href="#/signin"]').wait_for()
    await page.get_by_role("button", name="Go on as Mia").click()
    await expect(page.locator("header .me")).to_have_text("Mia")
    await expect(page.get_by_role("alert")).to_have_count(0)
    await show(page, course.address)
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    assert len(keys) == 1
    assert await has_place(child, course)
    assert "errors" in await parent.send(SESSIONS)


@pytest.mark.parametrize("is_guarded", GUARDED)
async def test_a_request_whose_token_ended_is_not_repeated_as_another_user(
    board: Board, is_guarded: bool
) -> None:
    parent, child, course = await parent_and_child(board)
    context = await board.context(parent)
    if not is_guarded:
        await change_script(context, SAME_USER, ADOPTS)
    page = await board.open(context, course.address)
    is_sent, goes_on = await hold(page, "bookSlot", ends=True)
    await course.button(page).click()
    await is_sent.wait()
    await sign_in_in_another_tab(board, page, child)
    goes_on.set()
    if is_guarded:
        await course.row(page, "closed").get_by_text("Nothing was sent").wait_for()
        assert await remaining(board, course) == 12
        # The parent goes on, and the tab of the child is asked.
        await page.get_by_role("button", name="Sign in again").click()
        await sign_in(page, parent)
        await course.button(page).click()
        await course.row(page, "yours").wait_for()
        await shown(context.pages[1], "Vera is signed in").wait_for()
    else:
        await eventually(lambda: has_place(child, course), "the child has the place of the parent")


@pytest.mark.parametrize("is_guarded", GUARDED)
async def test_the_events_of_a_page_are_those_of_the_user_who_signed_in_at_once(
    board: Board, is_guarded: bool
) -> None:
    parent, child, course = await parent_and_child(board)
    context = await board.context(parent)
    guards = () if is_guarded else (NOBODY_BETWEEN, OTHER_SOCKET)
    await change_script(context, STAYS_OPEN, *guards)
    page, sockets = await board.new_page(context), list[WebSocket]()
    page.on("websocket", lambda each: sockets.append(each))  # noqa: PLW0108  (sets attributes)
    await page.goto(f"/board{course.address}")
    await page.locator(".live:not(.stale)").wait_for()
    await show(page, "#/signin")
    await sign_in(page, child)
    await expect(page.locator("header .me")).to_have_text("Mia")
    await show(page, course.address)
    await page.locator(".live:not(.stale)").wait_for()
    assert len(sockets) == (2 if is_guarded else 1)
    if is_guarded:
        await child.book_slot(course.slot_id)
        await course.row(page, "yours").wait_for()


@pytest.mark.parametrize("is_guarded", GUARDED)
async def test_an_unanswered_request_of_another_user_in_this_tab_is_not_sent_for_the_next(
    board: Board, is_guarded: bool
) -> None:
    parent, child, course = await parent_and_child(board)
    context = await board.context(parent)
    if not is_guarded:
        await change_script(context, OWN_REQUESTS, SAME_USER, SAME_LOOP, NOBODY_BETWEEN)
    page = await board.open(context, course.address)
    keys, is_lost = sent_keys(page), True

    async def lose(route: Route) -> None:
        if is_lost and asks_for(route.request, "bookSlot"):
            await route.abort()
        else:
            await route.fallback()

    await page.route("**/graphql", lose)
    await course.button(page).click()
    await course.row(page, "lost").wait_for()
    await show(page, "#/signin")
    await sign_in(page, child)
    await expect(page.locator("header .me")).to_have_text("Mia")
    is_lost, of_parent = False, set(keys)
    if is_guarded:
        for _ in range(2):
            await show(page, course.address)
            await course.button(page).wait_for()  # nothing is being decided
            await page.reload()
        await course.button(page).click()
        await course.row(page, "yours").wait_for()
        assert len(of_parent) == 1
        assert keys[-1] not in of_parent
        assert await remaining(board, course) == 11
    else:
        await eventually(lambda: has_place(child, course), "the child has the place of the parent")


@pytest.mark.parametrize("was_known", [True, False])
async def test_offline_one_signs_out_here_and_later_there(board: Board, was_known: bool) -> None:
    student, course = await board.student(), await board.course()
    await student.book_slot(course.slot_id)
    context, is_lost = await board.context(student), not was_known

    async def lose(route: Route) -> None:
        if is_lost:
            await route.abort()
        else:
            await route.fallback()

    await context.route("**/graphql", lose)
    page, other = [await board.open(context, each) for each in ("#/account", "#/week")]
    if was_known:
        await page.get_by_role("heading", name="Mia").wait_for()
    is_lost = True
    await page.evaluate("sessionStorage.setItem('slotlock.door.1', '{}')")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await shown(page, "The server learns it as soon as there is a connection").wait_for()
    for each in (page, other):
        await each.locator('nav a[href="#/signin"]').wait_for()
    stored = "Object.keys({ ...localStorage, ...sessionStorage }).join()"
    assert await page.evaluate(stored) == "slotlock.language"
    assert await student.execute(SESSIONS)
    is_lost = False

    async def has_ended() -> bool:
        return "errors" in await student.send(SESSIONS)

    await eventually(has_ended, "the session has ended on the server")
    await expect(page.get_by_role("alert")).to_have_count(0)


async def go_on_as_colleague(board: Board, page: Page, colleague: Student) -> None:
    """Let another organizer go on at this page."""
    await sign_in_in_another_tab(board, page, colleague, "Mr Lang")
    async with page.expect_request(
        lambda each: asks_for(each, "doorSlot") or asks_for(each, "user")
    ):
        await page.get_by_role("button", name="Go on as Mr Lang").click()
    await expect(page.locator("header .me")).to_have_text("Mr Lang")


async def test_marking_all_as_absent_does_not_go_on_as_the_next_organizer(board: Board) -> None:
    first, second = [await board.colleague(name) for name in ("Ms Keller", "Mr Lang")]
    course = await board.course(**times_in(1))
    for name in ("Mia", "Noa"):
        await (await board.student(name)).book_slot(course.slot_id)
    await board.organizer.update_slot(course.slot_id, startTime=hours_from_now(-1))
    page = await board.open(await board.context(first), f"#/door/{course.slot_id}")
    is_sent, goes_on = await hold(page, "markNoShow")
    await page.get_by_role("button", name="Mark all 2 missing as absent").click()
    await page.get_by_role("button", name="Mark as absent").click()
    await is_sent.wait()
    await go_on_as_colleague(board, page, second)
    goes_on.set()

    async def count_absent() -> int:
        roster = await board.organizer.execute(ROSTER, id=course.slot_id)
        return [each["attendance"] for each in roster["nodes"]].count("NO_SHOW")

    async def are_absent() -> bool:
        return await count_absent() == 1

    await eventually(are_absent, "those who were marked are absent")
    await show(page, "#/week")
    await page.get_by_role("heading", name="My week").wait_for()
    assert await count_absent() == 1


async def test_a_form_is_not_sent_on_as_the_next_organizer(board: Board) -> None:
    first, second = [await board.colleague(name) for name in ("Ms Keller", "Mr Lang")]
    member = await board.student("Mia")
    await board.vouch_for(member)
    view, user_id = "people", await member.fetch_user_id()
    page = await board.open(await board.context(first), f"#/{view}/{user_id}")
    is_sent, goes_on = await hold(page, "updateUser")
    await page.get_by_label("Name", exact=True).fill("Mia Maier")
    await page.get_by_label("Groups").fill("7a")
    await page.get_by_role("button", name="Save").click()
    await is_sent.wait()
    await go_on_as_colleague(board, page, second)
    # What was begun ends with reading the account again.
    async with page.expect_request(lambda each: asks_for(each, "user")):
        goes_on.set()
    me = await member.execute("{ me { name groups } }")
    assert me == {"name": "Mia Maier", "groups": []}


@pytest.mark.parametrize("is_guarded", GUARDED)
async def test_wishes_that_are_being_sent_are_not_sent_for_the_next_user(
    board: Board, is_guarded: bool
) -> None:
    parent, child, course = await parent_and_child(board)
    mate = await board.student("Noa")
    until = {"campaignId": course.campaign_id, "wishesUntil": hours_from_now(1)}
    await board.organizer.execute(CONFIGURE, input=until)
    await parent.create_team_with(mate)
    context = await board.context(parent)
    if not is_guarded:
        await change_script(context, OWNER, OWNER_OF_WISHES)
    page = await board.open(context, f"#/wishes/{course.campaign_id}")
    await page.get_by_label("For whom").select_option("Roommates")
    await page.get_by_role("button", name="Add: Chess").click()
    await shown(page, "Your wishes are saved.").wait_for()
    # The list is sent once more when its view ends.
    is_sent, goes_on = await hold(page, "setWishes")
    await page.get_by_label("For whom").select_option("For me alone")
    await is_sent.wait()
    await sign_in_in_another_tab(board, page, child)
    await page.get_by_role("button", name="Go on as Mia").click()
    await expect(page.locator("header .me")).to_have_text("Mia")
    goes_on.set()

    async def wishes() -> list[int]:
        """Return with how many users each of them has wishes."""
        found = [await each.execute(MY_WISHES, id=course.campaign_id) for each in (parent, child)]
        return [len(each["userIds"]) if each else 0 for each in found]

    expected = [1, 0 if is_guarded else 1]

    async def are_sent() -> bool:
        return await wishes() == expected

    await eventually(are_sent, "the wishes of the parent are sent")
    await show(page, "#/week")
    await page.get_by_role("heading", name="My week").wait_for()
    assert await wishes() == expected
