"""Two friends book together with the board, at the width of a phone: both places, or none."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.support.board.pages import (
    CREATE_USER,
    PASSWORD,
    Board,
    Course,
    Student,
    change_script,
    lose_first,
    sent_keys,
)
from tests.support.clients.campaigns import update_campaign
from tests.support.clients.teams import CREATE_TEAM, INVITE_TO_TEAM

pytestmark = pytest.mark.asyncio(loop_scope="module")

PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
BOTH = "Book for both, or for none: Chess"
SET_PASSWORD = """mutation($token: String!, $password: String!) {
  setPassword(token: $token, password: $password) { ... on Session { accessToken refreshToken } }
}"""
ROSTER = "query($id: ID!) { slotRoster(slotId: $id, first: 50) { nodes { user { name } } } }"


@dataclass
class Friends:
    """Ada and Ben, who are a team."""

    ada: Student
    ben: Student


@pytest_asyncio.fixture(loop_scope="module")
async def friends(board: Board) -> Friends:
    ada, ben = [await board.student(name) for name in ("Ada", "Ben")]
    await ada.create_team_with(ben)
    return Friends(ada, ben)


async def names_with_a_place(board: Board, course: Course) -> Sequence[str]:
    """Return the names on the roster of a course."""
    roster = await board.organizer.execute(ROSTER, id=course.slot_id)
    return sorted(each["user"]["name"] for each in roster["nodes"])


async def open_course(board: Board, student: Student, course: Course) -> Page:
    """Open the page of a course on a phone."""
    context = await board.context(student, **PHONE)
    page = await board.open(context, f"#/slot/{course.slot_id}")
    await page.locator(".live:not(.stale)").wait_for()
    return page


async def test_one_tap_books_for_both_friends(board: Board, friends: Friends) -> None:
    course = await board.course()
    page = await open_course(board, friends.ada, course)
    await page.get_by_role("button", name=BOTH).click()
    await page.get_by_text("Ben has a place").wait_for()
    await page.get_by_role("heading", name="Yours", exact=True).wait_for()
    assert await names_with_a_place(board, course) == ["Ada", "Ben"]
    await page.reload()  # what the server says of a place stays
    await page.get_by_text("Ben has a place").wait_for()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360


async def test_with_one_place_left_both_are_asked_who_gets_it(
    board: Board, friends: Friends
) -> None:
    course = await board.course(capacity=1)
    page = await open_course(board, friends.ada, course)
    await page.get_by_text("Only 1 place is free: choose one.").wait_for()
    await page.get_by_label("Me", exact=True).check()
    await page.get_by_role("button", name="Book for me: Chess").click()
    await page.get_by_role("heading", name="Yours", exact=True).wait_for()
    assert await names_with_a_place(board, course) == ["Ada"]


async def test_a_refusal_names_the_user_and_the_row_says_it(board: Board, friends: Friends) -> None:
    course = await board.course()
    other = await board.organizer.add_slot(campaignId=course.campaign_id, title="Go")
    await friends.ben.book_slot(other)
    page = await board.visit(friends.ada, course, **PHONE)
    await page.get_by_role("button", name="Book for …: Chess").click()
    await page.get_by_role("button", name=BOTH).click()
    said = "Nothing was booked. Ben: has another course at this time."
    await course.row(page).get_by_text(said).wait_for()
    assert await names_with_a_place(board, course) == []


async def test_what_is_typed_stays_when_the_answer_to_an_invitation_goes(board: Board) -> None:
    ada, ben = [await board.student(name) for name in ("Ada", "Ben")]
    team = (await ada.execute(CREATE_TEAM, name="Duo"))["id"]
    email = (await ben.execute("{ me { email } }"))["email"]
    await ada.execute(INVITE_TO_TEAM, team=team, email=email)
    context = await board.context(ben, **PHONE)
    await context.clock.install()
    page = await board.open(context, "#/account")
    await page.get_by_role("button", name="Join: Duo").click()
    answer = page.locator(".notice", has_text="You are in the team Duo.")
    await answer.wait_for()
    field = page.get_by_label("Name of a new team")
    await field.fill("Trio")
    await page.clock.run_for(16_000)
    await page.evaluate("dispatchEvent(new Event('offline'))")  # shows the page anew
    await page.clock.run_for(1_000)
    await expect(answer).to_have_count(0)
    await expect(field).to_have_value("Trio")
    await expect(field).to_be_focused()


@pytest.mark.parametrize("is_stored", [True, False], ids=["guarded", "control"])
async def test_a_reload_in_the_middle_asks_again_for_both_with_the_same_key(
    board: Board, friends: Friends, is_stored: bool
) -> None:
    course = await board.course()
    context = await board.context(friends.ada, **PHONE)
    if not is_stored:
        await change_script(context, ("    remember(at, request);\n", ""))
    page = await board.open(context, f"#/slot/{course.slot_id}")
    keys, lost = sent_keys(page, "bookSlots"), await lose_first(page, "bookSlots")
    await page.get_by_role("button", name=BOTH).click()
    await lost.wait()
    await page.reload()
    if is_stored:
        await page.get_by_role("heading", name="Yours", exact=True).wait_for()
    else:
        await page.get_by_role("button", name=BOTH).wait_for()
    assert len(set(keys)) == 1
    assert await names_with_a_place(board, course) == (["Ada", "Ben"] if is_stored else [])


async def test_the_keyboard_alone_books_for_the_other_and_gives_back(
    board: Board, friends: Friends
) -> None:
    course = await board.course()
    page = await board.visit(friends.ada, course)
    await page.get_by_role("button", name="Book for …: Chess").focus()
    await page.keyboard.press("Enter")
    await page.get_by_label("Me", exact=True).focus()
    await page.keyboard.press("Space")
    await page.get_by_role("button", name="Book for Ben: Chess").focus()
    await page.keyboard.press("Enter")
    await course.row(page, "open").get_by_text("Ben has a place").wait_for()
    assert await names_with_a_place(board, course) == ["Ben"]
    await page.goto(f"/board#/slot/{course.slot_id}")
    for name in ("Give back: Ben", "Give back"):
        await page.get_by_role("button", name=name, exact=True).focus()
        await page.keyboard.press("Enter")
    await expect(page.get_by_text("Ben has a place")).to_have_count(0)
    assert await names_with_a_place(board, course) == []


@pytest.mark.parametrize("queue", ["of the course", "of the campaign", "since it was opened"])
async def test_in_a_queue_each_of_both_has_a_ticket(
    board: Board, friends: Friends, queue: str
) -> None:
    rules: dict[str, Any] = {"admission": "QUEUE_ONLY"}
    course = await board.course(**rules if queue == "of the course" else {})
    if queue == "of the campaign":
        await update_campaign(board.organizer, course.campaign_id, **rules)
    page = await open_course(board, friends.ada, course)
    button = page.get_by_role("button", name="Join the queue for both: Chess")
    if queue == "since it was opened":
        button = page.get_by_role("button", name=BOTH)
        await button.wait_for()
        await update_campaign(board.organizer, course.campaign_id, **rules)
    await button.click()
    await page.get_by_text("Ben has a place").wait_for()
    await page.get_by_role("heading", name="Yours", exact=True).wait_for()
    assert await names_with_a_place(board, course) == ["Ada", "Ben"]


async def test_a_place_that_the_other_gave_back_is_not_shown_any_more(
    board: Board, friends: Friends
) -> None:
    course = await board.course()
    page = await open_course(board, friends.ada, course)
    await page.get_by_role("button", name=BOTH).click()
    await page.get_by_text("Ben has a place").wait_for()
    slot = await friends.ben.fetch_slot(course.slot_id)
    await friends.ben.cancel_booking(slot["myBooking"]["id"])
    await page.reload()
    await page.get_by_role("button", name="Book for Ben: Chess").wait_for()


async def test_a_place_that_the_other_moved_is_not_said_to_be_given_back(
    board: Board, friends: Friends
) -> None:
    course, other = [await board.course() for _ in range(2)]
    page = await open_course(board, friends.ada, course)
    await page.get_by_role("button", name=BOTH).click()
    await page.get_by_text("Ben has a place").wait_for()
    slot = await friends.ben.fetch_slot(course.slot_id)
    await friends.ben.move(slot["myBooking"]["id"], other.slot_id)
    for name in ("Give back: Ben", "Give back"):
        await page.get_by_role("button", name=name, exact=True).first.click()
    await page.get_by_text("This booking no longer exists.").wait_for()
    await expect(page.get_by_text("Ben has a place")).to_have_count(0)
    assert await names_with_a_place(board, other) == ["Ben"]


async def test_without_a_team_nothing_asks_for_whom(board: Board) -> None:
    student, course = await board.student(), await board.course()
    page = await board.visit(student, course, **PHONE)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await course.button(page).click()
    await course.row(page, "yours").wait_for()
    assert not any("together.js" in url for url in requests)


async def test_a_pupil_with_a_user_name_is_invited_and_joins_on_the_first_page(
    board: Board,
) -> None:
    ada = await board.student("Ada")
    name = f"ben-{secrets.token_hex(6)}"
    created = await (await board.admin()).execute(
        CREATE_USER, input={"name": "Ben", "username": name}
    )
    ben = Student(board.http, board.app.url)
    token = created["invitationToken"]
    session = await ben.execute(SET_PASSWORD, token=token, password=PASSWORD)
    ben.token, ben.refresh_token = session["accessToken"], session["refreshToken"]
    course, context = await board.course(), await board.context(ada, **PHONE)
    await change_script(context, ("AWAITED_MS = 20_000", "AWAITED_MS = 100"))
    page = await board.open(context, "#/account")
    await page.get_by_label("Name of a new team").fill("Duo")
    await page.get_by_role("button", name="Create").click()
    await page.get_by_label("Invite by email address or user name").fill(name)
    await page.get_by_role("button", name="Invite", exact=True).click()
    await page.get_by_text(f"{name} is invited.").first.wait_for()
    await page.goto(f"/board#/slot/{course.slot_id}")
    await page.get_by_role("button", name="Book: Chess").wait_for()
    inviting, page = page, await board.open(await board.context(ben, **PHONE))
    await page.get_by_text("Ada invites you to the team Duo.").wait_for()
    await page.get_by_role("button", name="Join: Duo").click()
    await page.get_by_text("You are in the team Duo.").first.wait_for()
    await inviting.get_by_role("button", name=BOTH).wait_for()  # without a reload
    await page.goto(f"/board#/slot/{course.slot_id}")
    await page.get_by_role("button", name=BOTH).wait_for()
    await inviting.goto("/board#/account")
    await inviting.get_by_text("Ada and Ben").wait_for()
