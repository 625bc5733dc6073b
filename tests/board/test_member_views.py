"""A member's views in a real browser: a course, the week, the account, and an invitation."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import expect

from tests.support.board.pages import CREATE_USER, PASSWORD, Board, Course, serve_sources, shown
from tests.support.clients.campaigns import UPDATE_CAMPAIGN, set_groups
from tests.support.polling import eventually
from tests.support.stores.users import new_email

pytestmark = pytest.mark.asyncio(loop_scope="module")

IS_STORED = """async () => {
  await navigator.serviceWorker.ready;
  const names = await caches.keys();
  return names.length === 1 && Boolean(await caches.match("/board"));
}"""
RENDER = """async (text) => {
  const { markdown } = await import("/board/sources/markdown.js");
  const parent = document.createElement("div");
  parent.append(...markdown(text));
  return parent.innerHTML;
}"""


async def test_the_place_in_line_is_live_and_leaving_it_asks_once(board: Board) -> None:
    student, first, second = [await board.student(name) for name in ("Mia", "Jonas", "Ada")]
    course = await board.course(capacity=1, waitlistCapacity=5, waitlistOfferMinutes=30)
    await second.book_slot(course.slot_id)
    await first.join(course.slot_id)
    await student.join(course.slot_id)
    page = await board.open(await board.context(student), f"#/slot/{course.slot_id}")
    await expect(page.locator("p.turn")).to_contain_text("2nd")
    await expect(page.locator(".live:not(.stale)")).to_be_visible()
    await first.leave(course.slot_id)
    await expect(page.locator("p.turn")).to_contain_text("1st")
    await page.get_by_role("button", name="Leave the waiting list").focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("group", name="Leave the waiting list?").wait_for()
    await expect(page.locator(":focus")).to_have_text("Stay")
    await page.get_by_role("button", name="Leave the waiting list").click()
    await page.get_by_role("button", name="Join waiting list").wait_for()
    await expect(page.locator(":focus")).to_have_text("Join waiting list: Chess")


async def test_the_week_opens_with_its_code_without_a_network(board: Board) -> None:
    # Just before midnight, where a day of the week has hardly room for its name.
    tomorrow = datetime.now(UTC).replace(hour=23, minute=50, second=0) + timedelta(days=1)
    course = await board.course(
        startTime=tomorrow.isoformat(), endTime=(tomorrow + timedelta(hours=1)).isoformat()
    )
    student = await board.student()
    await student.book_slot(course.slot_id)
    context = await board.context(student)
    page = await board.open(context, "#/week")
    code = page.get_by_role("img", name="Code for Chess")
    await code.wait_for()
    drawn = await code.locator("path").get_attribute("d")
    await eventually(lambda: page.evaluate(IS_STORED), "the week is stored")
    await context.set_offline(True)
    await page.reload()
    await shown(page, "No connection since").wait_for()
    assert await code.locator("path").get_attribute("d") == drawn
    await page.get_by_role("link", name="Chess", exact=True).click()
    await page.get_by_role("heading", level=1, name="Chess").wait_for()
    assert await code.locator("path").get_attribute("d") == drawn


async def test_nothing_of_a_member_stays_in_the_browser_after_signing_out(board: Board) -> None:
    student, course = await board.student(), await board.course()
    await student.book_slot(course.slot_id)
    page = await board.open(await board.context(student), "#/week")
    await page.get_by_role("img", name="Code for Chess").wait_for()
    await page.goto("/board#/account")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await page.get_by_role("link", name="Sign in").first.wait_for()
    assert await page.evaluate("Object.keys(localStorage)") == ["slotlock.language"]


async def test_an_invitation_of_nobody_says_so_and_its_token_leaves_the_address(
    board: Board,
) -> None:
    page = await board.open(await board.context(), "#/invitation/of-nobody")
    assert page.url.endswith("#/invitation")
    await shown(page, "This link or code was used before, has ended or is mistyped.").wait_for()
    await page.go_back()
    assert "of-nobody" not in page.url


async def test_a_pupil_types_the_code_of_a_letter(board: Board) -> None:
    given = {"name": "Lena Weber", "username": f"lena.{secrets.token_hex(6)}"}
    invited = await (await board.admin()).execute(CREATE_USER, input=given)
    page = await board.open(await board.context(), "#/signin")
    await page.get_by_role("link", name="I have a code").click()
    for typed, expected in (
        ("7KQ4-M9XT-2HFW", "This link or code was used before, has ended or is mistyped."),
        (invited["invitationToken"].lower().replace("-", " "), "Lena Weber, you sign in as"),
    ):
        await page.get_by_label("Code").fill(typed)
        await page.get_by_role("button", name="Continue").click()
        await shown(page, expected).wait_for()
    assert page.url.endswith("#/invitation")


async def test_an_invitation_says_whose_it_is_and_what_is_wrong_in_every_language(
    board: Board,
) -> None:
    email = new_email()
    given = {"name": "Lena Weber", "email": email}
    invited = await (await board.admin()).execute(CREATE_USER, input=given)
    page = await board.open(await board.context(), f"#/invitation/{invited['invitationToken']}")
    await shown(page, "Lena Weber, you sign in as").wait_for()
    # A password manager stores the new password for this name.
    assert await page.locator("form [autocomplete=username]").input_value() == email
    await page.get_by_role("link", name="中文").click()
    # The rules are there before anybody types.
    rules = await page.get_by_label("新密码").get_attribute("aria-describedby")
    await expect(page.locator(f"#{rules}")).to_contain_text("8 到 128 个字符")
    await page.get_by_label("新密码").fill("short")
    await page.get_by_role("button", name="设置密码").click()
    await shown(page, "密码须为 8 到 128 个字符。").wait_for()
    await page.get_by_label("新密码").fill(PASSWORD)
    await page.get_by_role("button", name="设置密码").click()
    await page.locator("a.me").wait_for()


async def test_a_weekly_course_says_its_days_and_the_limits_of_ones_group(board: Board) -> None:
    weekly = [
        {"weekday": day, "startTime": "15:30", "endTime": "16:30"} for day in ("MONDAY", "THURSDAY")
    ]
    timetable = {"first": "2031-05-05", "last": "2031-05-30", "weekly": weekly}
    limits = [{"group": "7*", "limit": 3}, {"group": "7b", "limit": 1}, {"group": "8", "limit": 2}]
    course = await board.course(
        timetable=timetable, startTime=None, endTime=None, groupLimits=limits
    )
    student = await board.student()
    await board.vouch_for(student)
    await set_groups(board.organizer, student, "7a")
    page = await board.visit(student, course)
    await expect(course.row(page)).to_contain_text("Every Monday and Thursday 15:30, 8 meetings")
    link = course.row(page).locator("h3 a")
    box = await link.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    await link.click()
    await shown(page, "7a: at most 3 places").wait_for()
    await expect(page.locator("ul.dates li")).to_have_count(8)


async def test_a_full_weekly_course_leads_to_what_is_free_at_its_next_meeting(board: Board) -> None:
    def weekly(day: str) -> dict[str, Any]:
        rows = [{"weekday": day, "startTime": "15:30", "endTime": "16:30"}]
        timetable = {"first": "2031-05-05", "last": "2031-05-30", "weekly": rows}
        return {"timetable": timetable, "startTime": None, "endTime": None}

    course = await board.course(capacity=1, **weekly("MONDAY"))
    for title, day in (("Go", "MONDAY"), ("Tennis", "TUESDAY")):
        campaign = {"campaignId": course.campaign_id, "title": title}
        await board.organizer.add_slot(capacity=2, **campaign, **weekly(day))
    await (await board.student("Jonas")).book_slot(course.slot_id)
    page = await board.open(await board.context(), f"#/slot/{course.slot_id}")
    free = page.get_by_role("complementary", name="Still free at the same time")
    await expect(free.locator("h3")).to_have_text(["Go"])


@pytest.mark.parametrize("opens_in_s", [-1, 3600])
async def test_a_course_for_some_classes_says_so_to_others_and_is_not_for_them(
    board: Board, opens_in_s: float
) -> None:
    course = await board.course(opens_in_s=opens_in_s, onlyForGroups=["9a", "10*"], number="R-2")
    mia, tom = await board.student("Mia"), await board.student("Tom")
    for student, group in ((mia, "8a"), (tom, "10b")):
        await board.vouch_for(student)
        await set_groups(board.organizer, student, group)
    page = await board.visit(mia, course)
    await page.set_viewport_size({"width": 360, "height": 800})
    await expect(course.row(page, "closed")).to_contain_text("Only for 10…, 9a")
    await expect(course.row(page, "closed")).to_contain_text("No. R-2 · Room 1")
    await page.get_by_label("For me").check()
    await shown(page, "No course found.").wait_for()
    await page.goto(f"/board#/slot/{course.slot_id}")
    await expect(page.locator("dl.facts")).to_contain_text("For10…, 9a")
    page = await board.visit(tom, course)
    await page.get_by_label("For me").check()
    await course.row(page, "open" if opens_in_s < 0 else "soon").wait_for()


async def test_places_of_a_course_that_has_begun_are_not_free(board: Board) -> None:
    begun = datetime.now(UTC) - timedelta(minutes=5)
    course = await board.course(
        startTime=begun.isoformat(), endTime=(begun + timedelta(hours=1)).isoformat()
    )
    page = await board.open(await board.context(), course.address)
    await course.row(page, "closed").wait_for()
    await page.get_by_label("Free places").check()
    await shown(page, "No course found.").wait_for()
    await page.goto(f"/board#/slot/{course.slot_id}")
    await expect(page.locator("dl.facts")).to_contain_text("12 places")


async def test_an_opening_that_is_moved_moves_on_open_pages(board: Board) -> None:
    student, course = await board.student(), await board.course(opens_in_s=3600)
    page = await board.visit(student, course)
    await course.row(page, "soon").wait_for()
    await page.locator(".live:not(.stale)").wait_for()
    opens_at = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    moved = {"campaignId": course.campaign_id, "opensAt": opens_at}
    await board.organizer.execute(UPDATE_CAMPAIGN, input=moved)
    await course.button(page).click()
    await course.row(page, "yours").wait_for()


async def test_the_one_booking_of_a_campaign_moves_from_the_list(board: Board) -> None:
    student, course = await board.student(), await board.course()
    limit = {"campaignId": course.campaign_id, "maxBookings": 1}
    await board.organizer.execute(UPDATE_CAMPAIGN, input=limit)
    day = datetime.now(UTC) + timedelta(days=9)
    times = {"startTime": day.isoformat(), "endTime": (day + timedelta(hours=1)).isoformat()}
    other = await board.organizer.add_slot(campaignId=course.campaign_id, title="Go", **times)
    await student.book_slot(course.slot_id)
    page = await board.visit(student, course)
    swap = page.get_by_role("button", name="Swap: Chess for Go")
    await swap.click()
    await shown(page, "Swap Chess for Go? Somebody else may get the old place at once.").wait_for()
    await page.get_by_role("button", name="Keep it: Go").click()
    await swap.click()
    await page.get_by_role("button", name="Keep it: Go").wait_for()
    await swap.click()
    await Course(course.campaign_id, other).row(page, "yours").wait_for()
    await course.button(page).wait_for(state="detached")
    await page.get_by_role("button", name="Swap: Go for Chess").wait_for()


async def test_the_first_page_of_a_user_decides_the_language_of_their_mails(board: Board) -> None:
    student = await board.student()
    stored = [{"name": "slotlock.refreshToken", "value": student.refresh_token}]
    state: Any = {"origins": [{"origin": board.app.url, "localStorage": stored}]}
    context = await board.browser.new_context(
        base_url=board.app.url, locale="de", storage_state=state
    )
    board.contexts.append(context)
    await board.open(context)

    async def speaks_german() -> bool:
        return bool((await student.execute("{ me { locale } }"))["locale"] == "de")

    await eventually(speaks_german, "mails in German")


async def test_a_new_device_speaks_the_language_of_the_account(board: Board) -> None:
    student = await board.student()
    page = await board.open(await board.context(student), "#/account")
    await page.get_by_label("Language", exact=True).select_option("de")
    await shown(page, "In deinem Konto gespeichert").wait_for()
    context = await board.browser.new_context(base_url=board.app.url, locale="en")
    board.contexts.append(context)
    page = await board.open(context, "#/signin")
    email = (await student.execute("{ me { email } }"))["email"]
    await page.get_by_label("Email address").fill(email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("heading", name="Was du buchen kannst").wait_for()
    assert await page.evaluate("document.documentElement.lang") == "de"


async def test_one_booking_is_added_to_the_calendar_of_the_device(board: Board) -> None:
    student, course = await board.student(), await board.course()
    await student.book_slot(course.slot_id)
    page = await board.open(await board.context(student), f"#/slot/{course.slot_id}")
    link = page.get_by_role("link", name="Add to calendar: Chess", exact=True)
    response = await board.http.get(board.app.url + str(await link.get_attribute("href")))
    assert "SUMMARY:Chess" in response.text
    await page.goto("/board#/week")
    await page.get_by_role("heading", name="Next: Chess").wait_for()
    await link.wait_for()


async def test_stars_come_first_and_the_focus_stays_at_the_star(board: Board) -> None:
    student, course = await board.student(), await board.course(opens_in_s=3600)
    page = await board.visit(student, course)
    await page.get_by_role("button", name="Star: Chess").focus()
    await page.keyboard.press("Enter")
    await page.get_by_role("heading", name="Your stars").wait_for()
    await expect(page.locator(":focus")).to_have_text("Star: Chess")
    assert await page.locator("[aria-pressed=true]").count() == 2


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a **b *c*** <b>d</b>", "<p>a <strong>b <em>c</em></strong> &lt;b&gt;d&lt;/b&gt;</p>"),
        ("- one\n- two", '<ul class="items"><li>one</li><li>two</li></ul>'),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("[x](http://a.example)", "<p>[x](http://a.example)</p>"),
        (
            "[x](https://a.example/b)",
            '<p><a href="https://a.example/b" rel="noopener noreferrer">x</a></p>',
        ),
    ],
)
async def test_a_description_is_a_small_safe_part_of_markdown(
    board: Board, text: str, html: str
) -> None:
    page = await board.open(await board.context())
    await serve_sources(page)
    assert await page.evaluate(RENDER, text) == html
