"""Organizers at the door, and with a file of users, in a real browser."""

import asyncio
import json
import re
import secrets
from io import BytesIO
from typing import Any

import openpyxl
import pytest
import segno
from playwright.async_api import FilePayload, Page, expect
from pypdf import PdfReader

from tests.board.test_accessibility import violations
from tests.support.board.pages import Board, asks_for, shown
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import hours_from_now, times_in
from tests.support.stores.users import new_email

pytestmark = pytest.mark.asyncio(loop_scope="module")

CODE = """query($id: ID!) { slotRoster(slotId: $id, first: 1) { nodes { checkInCode } } }"""
RENAME = """mutation($user: ID!, $name: String) {
  updateUser(input: {userId: $user, name: $name}) { __typename } }"""
SET_GROUPS = "mutation($input: SetGroupsInput!) { setGroups(input: $input) { __typename } }"
# A camera that sees a QR code, in a browser that reads none.
CAMERA = """
delete globalThis.BarcodeDetector;
navigator.mediaDevices.getUserMedia = async () => {
  const rows = ROWS, scale = 10;
  const canvas = Object.assign(document.createElement("canvas"), { width: 800, height: 600 });
  const context = canvas.getContext("2d");
  const draw = () => {
    context.fillStyle = "#ddd";
    context.fillRect(0, 0, 800, 600);
    context.fillStyle = "#222";
    const at = 300 - rows.length * scale / 2;
    rows.forEach((row, y) => row.forEach((dark, x) => dark
      && context.fillRect(at + 100 + x * scale, at + y * scale, scale, scale)));
  };
  draw();
  setInterval(draw, 100);
  return canvas.captureStream();
};
"""
NO_CAMERA = "Object.defineProperty(navigator, 'mediaDevices', { value: undefined });"
PING = "mutation($id: ID!) { pingWebhook(webhookId: $id) { __typename } }"
NARROW_PX = 320
# Each view with its heading, so that a test waits for it after the one before.
VIEWS = {
    "door": "Check-in",
    "door/{slot}": "Check-in: Chess",
    "organizer/rooms": "Rooms and devices",
    "organizer/holidays": "Holidays",
    "organizer/new": "New booking period",
    "plan/{campaign}/settings": "Settings",
    "plan/{campaign}/new": "Add a course",
    "course/{slot}/edit": "Change",
    "monitor/{campaign}": "Live view: Courses",
    "people": "People",
    "people/{user}": "Mia",
    "people/new": "New person",
    "people/import": "Import a file",
    "people/invitations": "Invitations",
    "webhooks": "Webhooks",
}


def soon() -> dict[str, Any]:
    """Return the times of a slot that starts in an hour."""
    return times_in(1)


async def open_as_organizer(board: Board, view: str) -> Page:
    """Open a page of the board for a member who became an organizer."""
    keller = await board.colleague("Ms Keller")
    return await board.open(await board.context(keller), f"#/{view}")


async def scan(page: Page, code: str, verdict: str) -> None:
    """Type a code as a hand scanner does, wherever the focus is, and wait for the verdict."""
    await page.keyboard.type(code)
    await page.keyboard.press("Enter")
    await page.locator(f".verdict.{verdict}").wait_for()


async def test_the_door_lets_each_code_in_once_and_names_the_right_room(board: Board) -> None:
    course, other = await board.course(**soon()), await board.course(title="Band", **soon())
    student = await board.student("Mia")
    await student.book_slot(course.slot_id)
    await board.vouch_for(student)
    await board.organizer.execute(RENAME, user=await student.fetch_user_id(), name="Wren, Mia")
    found = await board.organizer.execute(CODE, id=course.slot_id)
    code = found["nodes"][0]["checkInCode"]
    page = await open_as_organizer(board, f"door/{course.slot_id}")
    await page.locator("h1").click()
    await scan(page, code, "yours")
    await expect(page.locator(".verdict")).to_contain_text("Mia Wren")
    await expect(page.locator(".list li")).to_contain_text("Wren, Mia")
    await scan(page, code, "wait")
    await expect(page.locator(".verdict")).to_contain_text("Already here")
    await page.locator(".verdict button").click()
    await page.get_by_role("button", name="Let in").wait_for()
    await page.goto(f"/board#/door/{other.slot_id}")
    await page.get_by_role("heading", name="Band").wait_for()
    await scan(page, code, "stop")
    await expect(page.locator(".verdict")).to_contain_text("Mia Wren has Chess: Room 1")


async def test_without_a_reader_of_codes_the_server_reads_what_the_camera_sees(
    board: Board,
) -> None:
    student, course = await board.student("Mia Wren"), await board.course(**soon())
    await student.book_slot(course.slot_id)
    [booking] = (await board.organizer.execute(CODE, id=course.slot_id))["nodes"]
    rows = [[*map(int, row)] for row in segno.make_qr(booking["checkInCode"]).matrix_iter()]
    context = await board.context(await board.colleague("Ms Keller"))
    camera = CAMERA.replace("ROWS", json.dumps(rows))
    page = await board.open(context, f"#/door/{course.slot_id}", camera)
    await page.get_by_role("button", name="Scan by camera").click()
    await page.locator(".verdict.yours").wait_for()
    await expect(page.get_by_text("Mia Wren").first).to_be_visible()
    await shown(page, "the picture goes to the server").wait_for()
    assert await violations(page) == []
    await page.get_by_role("button", name="Stop the camera").click()
    page = await board.open(context, f"#/door/{course.slot_id}", NO_CAMERA)
    await shown(page, "Without https").wait_for()
    await page.get_by_role("button", name="Hide").click()
    await expect(shown(page, "Without https")).to_have_count(0)


async def test_the_door_is_amber_for_somebody_who_is_hours_early(board: Board) -> None:
    course = await board.course(**times_in(3))
    await (await board.student("Mia")).book_slot(course.slot_id)
    page = await open_as_organizer(board, f"door/{course.slot_id}")
    await page.get_by_role("button", name="Let in").click()
    await expect(page.locator(".verdict.wait")).to_contain_text("Recorded, but early: it starts")
    await page.locator(".verdict").get_by_role("button", name="Undo").click()
    await page.get_by_role("button", name="Let in").wait_for()


async def test_the_bars_of_the_monitor_and_the_course_mean_taken(board: Board) -> None:
    course = await board.course(**soon(), capacity=4)
    await (await board.student("Mia")).book_slot(course.slot_id)
    page = await open_as_organizer(board, f"monitor/{course.campaign_id}")
    bar = page.locator(".level rect").last
    await shown(page, "1 of 4 taken").wait_for()
    await expect(bar).to_have_attribute("width", "25")
    await page.goto(f"/board#/course/{course.slot_id}")
    await shown(page, "1 of 4 places taken").wait_for()
    await expect(bar).to_have_attribute("width", "25")


async def test_problems_of_a_file_are_in_the_language_of_the_page_with_the_files_own_columns(
    board: Board,
) -> None:
    page = await open_as_organizer(board, "people/import")
    await page.evaluate("localStorage.setItem('slotlock.language', 'de')")
    await page.reload()
    content = "Nachname;Vorname;E-Mail\nMüller;Änne;niemand\n".encode()
    await page.set_input_files("#file", FilePayload(name="a.csv", mimeType="", buffer=content))
    await shown(page, "Das ist keine E-Mail-Adresse.").wait_for()
    await expect(page.locator("[aria-labelledby=problems] li")).to_contain_text("Zeile 2 · E-Mail")


async def test_the_list_stays_readable_without_a_network_and_nothing_is_recorded(
    board: Board,
) -> None:
    course = await board.course(**soon())
    await (await board.student("Mia")).book_slot(course.slot_id)
    page = await open_as_organizer(board, f"door/{course.slot_id}")
    enter = page.get_by_role("button", name="Let in")
    await enter.wait_for()
    await page.context.set_offline(True)
    await enter.click()
    await expect(page.locator(".verdict.wait")).to_contain_text("Not recorded")
    await page.context.set_offline(False)
    await enter.click()
    await page.locator(".verdict.yours").wait_for()


async def test_a_workbook_is_checked_before_it_is_imported(board: Board) -> None:
    page = await open_as_organizer(board, "people/import")

    async def choose(*rows: tuple[str | int | None, ...]) -> None:
        workbook, file = openpyxl.Workbook(), BytesIO()
        for row in (("Name", "Vorname", "E-Mail", "Klasse", "Schulweg"), *rows):
            workbook.worksheets[0].append(row)
        workbook.save(file)
        content = FilePayload(name="pupils.xlsx", mimeType="", buffer=file.getvalue())
        await page.set_input_files("#file", content)

    email = new_email()
    await choose(("Müller", 'Än"ne', email, 7, 1), ("陈", "思远", "no address", None, 1))
    await shown(page, "Line 3").wait_for()
    await choose(("Müller", 'Än"ne', email, 7, 1))
    await shown(page, "These columns are not known and were ignored: Schulweg.").wait_for()
    await page.get_by_role("button", name="Import 1 person").click()
    await page.locator(".notice", has_text="pupils.xlsx is imported.").wait_for()
    found = await board.organizer.execute(
        "query($text: String!) { users(filter: {text: $text}) { nodes { name groups } } }",
        text=email,
    )
    assert found["nodes"] == [{"name": 'Än"ne Müller', "groups": ["7"]}]
    # A year later she has left.
    await choose(("Schmidt", "Jo", new_email(), 7, 1))
    await page.get_by_role("button", name="Import 1 person").click()
    await page.locator(".notice", has_text="pupils.xlsx is imported.").wait_for()
    await page.get_by_role("link", name='Än"ne Müller').wait_for()
    await page.get_by_role("button", name=re.compile("^Block th")).click()
    await page.get_by_role("button", name="Block", exact=True).click()
    await page.locator("#leavers").wait_for(state="detached")
    banned = await board.organizer.execute(
        "query($text: String!) { users(filter: {text: $text, banned: true}) { nodes { name } } }",
        text=email,
    )
    assert banned["nodes"] == [{"name": 'Än"ne Müller'}]


async def test_a_secretary_vouches_for_the_pupils_of_a_file(board: Board) -> None:
    mia, ben = await board.student("Mia"), await board.student("Ben")
    emails = [(await each.execute("{ me { email } }"))["email"] for each in (mia, ben)]
    content = "email,groups\n" + "".join(f"{each},7a\n" for each in emails)
    page = await open_as_organizer(board, "people/import")
    file = FilePayload(name="pupils.csv", mimeType="text/csv", buffer=content.encode())
    await page.set_input_files("#file", file)
    await page.get_by_role("button", name="Confirm all of them").click()
    await page.get_by_label(emails[1]).select_option("Leave it")
    await page.get_by_role("button", name="Import 1 person").click()
    await page.locator(".notice", has_text="pupils.csv is imported.").wait_for()
    groups = [(await each.execute("{ me { groups } }"))["groups"] for each in (mia, ben)]
    assert groups == [["7a"], []]
    await page.get_by_role("link", name=emails[1]).click()
    await page.get_by_role("button", name="It is this person").click()
    await page.get_by_label("Groups").wait_for()


async def test_a_list_of_brothers_and_sisters_is_read_as_one_with_addresses_of_parents(
    board: Board,
) -> None:
    parent = new_email()
    page = await open_as_organizer(board, "people/import")
    await page.set_viewport_size({"width": 360, "height": 740})
    content = f"Name,Vorname,E-Mail,Klasse\nMünz,Mia,{parent},2b\nMünz,Ben,{parent},1a\n".encode()
    await page.set_input_files("#file", FilePayload(name="2b.csv", mimeType="", buffer=content))
    await shown(page, "Several people in this file have the same email address.").wait_for()
    await page.get_by_role("button", name="The email addresses are those of parents").click()
    await shown(page, "Parents and guardians: 2 new links to children, 0 removed").wait_for()
    await expect(page.locator("[data-key=read] li").first).to_contain_text(f"2b · {parent}")
    of_parents = page.get_by_label("The email addresses are those of parents")
    await expect(of_parents).to_be_checked()
    assert await violations(page) == []
    await page.get_by_role("button", name="Import 3 people").click()
    await page.locator(".notice", has_text="2b.csv is imported.").wait_for()
    await expect(of_parents).not_to_be_checked()
    found = await board.organizer.execute(
        "query($text: String!) { users(filter: {text: $text}) { nodes { name email } } }",
        text=parent,
    )
    assert [each["email"] for each in found["nodes"]] == [parent]


async def test_a_class_is_imported_as_it_was_seen_and_gets_letters(board: Board) -> None:
    tag = secrets.token_hex(3)
    names = ["Becker;Björn", "Zander;Ada", "Adler;Zoe", "Groß;"]
    users = [f"{name};u{number}.{tag};9c{tag}" for number, name in enumerate(names)]
    content = "\n".join(["Nachname;Vorname;Benutzername;Klasse", *users]).encode("cp1252")
    page = await open_as_organizer(board, "people/import")
    file = FilePayload(name="9c.csv", mimeType="text/csv", buffer=content)
    await page.set_input_files("#file", file)
    await shown(page, "Björn Becker").wait_for()
    await shown(page, f"Classes and groups: 9c{tag} (4)").wait_for()
    await shown(page, "First or last name missing: Line 5").wait_for()
    await page.get_by_role("button", name="Import 4 people").click()
    await page.get_by_role("link", name="Invitations").click()
    await page.get_by_label("Only these groups").fill(f"9c{tag}")
    await page.get_by_role("button", name="Create the links").click()
    for _ in range(2):
        async with page.expect_download() as saved:
            await page.get_by_role("button", name="Print letters (PDF)").click()
    pages = PdfReader(await (await saved.value).path()).pages
    text = pages[0].extract_text()
    order = [text.index(name) for name in ("Zoe Adler", "Björn Becker", "Groß", "Ada Zander")]
    assert (len(pages), order) == (1, sorted(order))
    # What is printed is what the page shows, in the same order.
    shown_codes = await page.locator(".list li .small").all_text_contents()
    places = [text.index(entry.rpartition(" · ")[2]) for entry in shown_codes]
    assert (len(places), places) == (4, sorted(places))
    assert await violations(page) == []
    reminder = page.get_by_role("link", name="Remind them again")
    for opens_in, count in ((24, 1), (-1, 0)):
        times = {"opensAt": hours_from_now(opens_in), "closesAt": hours_from_now(48)}
        group = {"eligibleGroups": [[f"9c{tag}"]]}
        campaign_id = await create_campaign(board.organizer, **times, **group)
        await board.organizer.add_slot(campaignId=campaign_id, **soon())
        async with page.expect_response(lambda it: asks_for(it.request, "campaignReadiness")):
            await page.goto(f"{board.app.url}/board#/plan/{campaign_id}")
        await expect(reminder).to_have_count(count)
        if not count:
            continue
        # The remedies are for those who may book, and for nobody else.
        await reminder.click()
        await expect(page.get_by_label("Only these groups")).to_have_value(f"9c{tag}")
        await page.go_back()
        await page.get_by_role("link", name="See who").click()
        await expect(page.locator(".list li strong")).to_have_count(4)
        await page.get_by_role("checkbox", name=re.compile("Can book in")).uncheck()
        await expect(page.get_by_role("checkbox", name=re.compile("Can book in"))).to_have_count(0)
    # Lists have the order and the names of sheets.
    slot_id = await board.organizer.add_slot(campaignId=campaign_id, capacity=4, **soon())
    listed = ["Adler, Zoe", "Becker, Björn", "Groß", "Zander, Ada"]
    await page.get_by_role("link", name="Organize").click()
    await page.get_by_role("link", name="People").click()
    await page.get_by_label("Group").fill(f"9c{tag}")
    await expect(page.locator(".list li strong")).to_have_text(listed)
    links = [
        await each.get_attribute("href") or "" for each in await page.locator(".list li a").all()
    ]
    both = {"userId": links[3].rpartition("/")[2], "groups": [f"8a{tag}", f"9c{tag}"]}
    await board.organizer.execute(SET_GROUPS, input=both)
    await page.goto(f"{board.app.url}/board#/monitor/{campaign_id}")
    await page.get_by_role("button", name="See names").click()
    unplaced = page.locator("[data-key=none] li > a:first-child")
    by_class = [listed[3], *listed[:3]]
    await expect(unplaced).to_have_text(by_class)
    await page.get_by_label("Group").select_option(f"8a{tag}")
    await expect(unplaced).to_have_text(listed[3:])
    await page.get_by_label("Group").select_option("All")
    # The names stay while somebody gives them places.
    await page.get_by_role("link", name="Give a place").first.click()
    await page.get_by_label("Course").wait_for()
    await page.get_by_role("link", name="Without a place").click()
    await expect(unplaced).to_have_text(by_class)
    for link in reversed(links):
        await board.organizer.book_slot(slot_id, userId=link.rpartition("/")[2])
    await page.goto(f"{board.app.url}/board#/course/{slot_id}")
    await expect(page.locator("[data-key=people] li strong")).to_have_text(listed)
    # The end of a course is one line of the log, not one for each of its places.
    cancel = "mutation($id: ID!) { cancelSlot(slotId: $id) { __typename } }"
    await board.organizer.execute(cancel, id=slot_id)
    await page.goto(f"{board.app.url}/board#/monitor/{campaign_id}")
    await page.get_by_text(re.compile(" canceled ")).first.wait_for()
    await expect(page.get_by_text("took the place in")).to_have_count(0)
    # Each act of the office is a line: a place that an organizer booked for a member, too.
    await expect(page.get_by_text(re.compile(" gave .+ a place in "))).to_have_count(4)


async def test_an_admin_takes_an_account_over_and_cancels_its_places(board: Board) -> None:
    stranger, course = await board.student("Eve"), await board.course()
    assert (await stranger.book(course.slot_id))["__typename"] == "Booked"
    email = (await stranger.execute("{ me { email } }"))["email"]
    page = await board.open(await board.context(await board.admin()), "#/organizer")
    await page.get_by_role("link", name="People").click()
    await page.get_by_label("Name or email address").fill(email)
    await page.locator("li", has_text=email).get_by_role("link").click()
    await page.get_by_role("button", name="Take it over").click()
    await shown(page, "Bookings of this account: 1.").wait_for()
    await page.get_by_role("button", name="Take it over and take its places away").click()
    await page.get_by_label("Link for Eve").wait_for()
    assert await stranger.error_code("{ mySessions { id } }") == "UNAUTHENTICATED"


async def test_an_admin_hands_out_a_link_for_a_forgotten_password(board: Board) -> None:
    student, admin = await board.student("Mia"), await board.admin()
    found = await student.execute("{ me { email } }")
    page = await board.open(await board.context(admin), "#/organizer")
    await page.get_by_role("link", name="People").click()
    await page.get_by_label("Name or email address").fill(found["email"])
    await page.locator("li", has_text=found["email"]).get_by_role("link").click()
    await page.get_by_role("button", name="New link for a password").click()
    link = await page.get_by_label("Link for Mia").input_value()
    pupil = await board.open(await board.context(), link.partition("/board")[2])
    await shown(pupil, "Mia, you sign in as").wait_for()
    await pupil.get_by_label("New password").fill("another horse battery staple")
    await pupil.get_by_role("button", name="Choose this password").click()
    await expect(pupil.locator("header .me")).to_have_text("Mia")
    assert await student.error_code("{ mySessions { id } }") == "UNAUTHENTICATED"


async def test_a_campaign_appears_and_leaves_the_list_by_itself(board: Board) -> None:
    page = await open_as_organizer(board, "organizer")
    await page.get_by_role("heading", name="Booking periods").wait_for()
    campaign_id = await create_campaign(board.organizer, name="Live clubs")
    entry = page.get_by_role("link", name="Live clubs", exact=True)
    await entry.wait_for()
    for name in ("unpublishCampaign", "deleteCampaign"):
        document = f"mutation($id: ID!) {{ {name}(campaignId: $id) {{ __typename }} }}"
        await board.organizer.execute(document, id=campaign_id)
    await expect(entry).to_have_count(0)


async def test_a_webhook_shows_its_secret_once_and_what_became_of_a_test(board: Board) -> None:
    course = await board.course(**soon())
    page = await open_as_organizer(board, "webhooks")
    await page.get_by_role("button", name="New webhook").click()
    await page.get_by_label("Address").fill("https://receiver.invalid/")
    await page.get_by_label("Booking period", exact=True).select_option(course.campaign_id)
    await page.get_by_role("button", name="Save").click()
    await page.locator(".error").wait_for()
    await page.get_by_label("booking.confirmed").check()
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("code")).to_contain_text("whsec_")
    entry = page.locator("main > ul > li", has=page.locator("code"))
    await entry.get_by_role("button", name="Send a test").click()
    await entry.get_by_text("ping", exact=True).wait_for()
    id_ = await entry.get_attribute("data-key")
    await page.reload()
    await page.get_by_text("https://receiver.invalid/").first.wait_for()
    assert await page.locator("code").count() == 0
    await asyncio.gather(*(board.organizer.execute(PING, id=id_) for _ in range(50)))
    entry = page.locator(f'main > ul > li[data-key="{id_}"]')
    await entry.get_by_role("button", name="Messages").click()
    await expect(entry.locator("ul > li")).to_have_count(50)
    await entry.get_by_role("button", name="Show older messages").click()
    await expect(entry.locator("ul > li")).to_have_count(51)
    await expect(entry.get_by_role("button", name="Show older messages")).to_have_count(0)


async def test_an_organizer_renames_a_user_who_has_signed_in_but_changes_no_address(
    board: Board,
) -> None:
    mia = await board.student("Mia")
    await board.vouch_for(mia)
    page = await open_as_organizer(board, f"people/{await mia.fetch_user_id()}")
    address = page.get_by_label("Email address or user name")
    await expect(address).to_have_attribute("readonly", "")
    await shown(page, "only an administrator changes this").wait_for()
    await page.get_by_label("Name", exact=True).fill("Mia Byron")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("heading", name="Mia Byron").wait_for()


async def test_axe_finds_nothing_on_the_views_of_organizers(board: Board) -> None:
    course = await board.course(**soon())
    student = await board.student("Mia")
    await student.book_slot(course.slot_id)
    ids = {"slot": course.slot_id, "campaign": course.campaign_id}
    ids["user"] = await student.fetch_user_id()
    page = await open_as_organizer(board, "people")
    await page.set_viewport_size({"width": NARROW_PX, "height": 800})
    for address, heading in VIEWS.items():
        await page.goto("/board#/" + address.format(**ids))
        await page.get_by_role("heading", name=heading, exact=True, level=1).wait_for()
        assert await violations(page) == [], address
        assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW_PX
