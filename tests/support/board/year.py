"""The steps of the guide of organizers: what a school secretary clicks, in the order of a year."""

import csv
from collections.abc import Callable
from io import StringIO

from playwright.async_api import Locator, Page, expect
from pypdf import PdfReader

from tests.support.board.pages import shown
from tests.support.board.school import (
    CLASS_SIZE,
    CLASSES,
    COURSES,
    END_OF_LESSON,
    FIRST_DAY,
    JUST_BEFORE,
    MINUTES,
    OPENING,
    ROOMS,
    RUSH,
    SECRETARY,
    TEACHER,
    WINDOW,
    School,
    Step,
    pupils_file,
    teachers_file,
)

STEPS: dict[str, Step] = {}


def step(heading: str) -> Callable[[Step], Step]:
    """Register a step under its heading in the guide."""

    def register(function: Step) -> Step:
        STEPS[heading] = function
        return function

    return register


def form(page: Page, name: str) -> Locator:
    """Return the form with this name."""
    return page.get_by_role("form", name=name, exact=True)


async def expect_done(page: Page, *names: str) -> None:
    """Wait until the first steps begin with these, and exactly these are ticked."""
    steps = page.locator("[data-key=steps] li")
    await expect(steps).to_have_count(7)
    await expect(steps.filter(has_text="Done")).to_have_count(len(names))
    for number, name in enumerate(names):
        await expect(steps.nth(number)).to_have_attribute("data-key", name)
        await expect(steps.nth(number)).to_contain_text("Done")


@step("Sign in")
async def sign_in(school: School) -> None:
    _, email, password = SECRETARY
    await school.click("Sign in")
    await school.fill("Email address or user name", email)
    await school.fill("Password", password)
    await school.page.locator("main form button").last.click()
    await shown(school.page, "There is no booking period yet.").wait_for()
    await expect_done(school.page)


@step("Bring the pupils in")
async def import_pupils(school: School) -> None:
    await school.click("Organize")
    await school.click("People")
    await school.click("Import a file")
    await school.page.set_input_files("#file", pupils_file())
    await school.page.get_by_role("button", name="Import 300 people").wait_for()
    await school.picture("import")
    await school.click("Import 300 people")
    await shown(school.page, "pupils.csv is imported.").first.wait_for()


@step("Enter the rooms")
async def enter_rooms(school: School) -> None:
    await school.click("Organize")
    await expect_done(school.page, "people")
    await school.click("Rooms and devices")
    await school.page.get_by_role("heading", name="Rooms and devices").wait_for()
    await school.fill("Names", "\n".join(ROOMS))
    await school.click("Check first")
    await shown(school.page, "New: 8. Already there: 0.").wait_for()
    await school.click("Add them")
    await school.page.get_by_role("listitem").filter(has_text="Music room").wait_for()


@step("Enter the holidays")
async def enter_holidays(school: School) -> None:
    await school.click("Organize")
    await expect_done(school.page, "people", "rooms")
    await school.click("Holidays")
    await school.fill("Name", "School year 2030/31")
    holidays = (("2031-04-07", "2031-04-18", "Easter"), ("2031-06-09", "", "Whit Monday"))
    for number, (first, last, name) in enumerate(holidays, 1):
        await school.click("Add holidays")
        await expect(school.page.locator(".rows > .row")).to_have_count(number)
        await school.fill("First day", first)
        await school.fill("Last day", last)
        await school.fill("Name", name)
    await school.click("Save")
    await shown(school.page, "Whit Monday: Monday").wait_for()


@step("Create a booking period")
async def create_campaign(school: School) -> None:
    await school.click("Organize")
    await expect_done(school.page, "people", "rooms", "holidays")
    await school.click("New booking period")
    await school.fill("Name", "Clubs in spring")
    await school.fill("Opens", OPENING)
    await school.fill("Closes", "2031-02-07T18:00")
    await school.fill("Groups that may take part", ", ".join(CLASSES))
    await school.fill("Places for each person, at most", "1")
    await school.picture("campaign", top="form")
    await school.click("Create the booking period")
    await shown(school.page, "There are no courses yet.").wait_for()


@step("Add the courses")
async def add_courses(school: School) -> None:
    for number, (title, room, day, start, end) in enumerate(COURSES):
        await school.click("Add a course")
        opened = form(school.page, "Add a course")
        await school.fill("Title", title)
        if not number:
            await opened.get_by_label("It takes place").select_option(
                label="Several meetings, one booking"
            )
            await school.fill("Teachers", TEACHER, opened)
            await school.fill("First day", "2031-02-17", opened)
            await school.fill("Last day", "2031-07-11", opened)
            await opened.get_by_label("Holidays to leave out").select_option(
                label="School year 2030/31"
            )
            await school.fill("Places", "25", opened)
            await school.fill("From each class or group, at most", "5", opened)
        await opened.get_by_role("combobox", name="Day", exact=True).select_option(day)
        await school.fill("Starts", start, opened)
        await school.fill("Ends", end, opened)
        await school.fill("Rooms and devices", room, opened)
        if not number:
            await school.picture("course", top="form", height=1300)
        await school.click("Create the course")
        await school.page.get_by_role("link", name=title, exact=True).wait_for()


@step("Invite the pupils")
async def invite_pupils(school: School) -> None:
    await school.click("Organize")
    await expect_done(school.page, "people", "rooms", "holidays", "campaign", "courses")
    await school.click("People")
    await school.click("Invitations")
    await school.click("Create the links")
    await school.page.get_by_role("heading", name="300 links").wait_for()
    await school.picture("invitations")
    async with school.page.expect_download() as letters:
        await school.click("Print letters (PDF)")
    assert len(PdfReader(await (await letters.value).path()).pages) == len(CLASSES) * 7
    async with school.page.expect_download() as saved:
        await school.click("Save as CSV")
    text = (await (await saved.value).path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(StringIO(text), delimiter=";"))
    school.links = [row["link"] for row in rows]
    school.late_pupil = rows[-1]["name"]
    assert len(school.links) == len(CLASSES) * CLASS_SIZE


@step("Teachers see their lists")
async def give_teachers_their_lists(school: School) -> None:
    await school.click("Organize")
    await school.click("People")
    await school.click("Import a file")
    await school.page.set_input_files("#file", teachers_file())
    await shown(school.page, "New leaders in “Rooms and devices”: 1").wait_for()
    await school.click("Import 1 person")
    await shown(school.page, "teachers.csv is imported.").first.wait_for()
    # Links for all would end those of the pupils, whom a later step lets in.
    await school.click("Invitations")
    await school.fill("Only these groups (all if empty)", "teachers")
    await school.click("Create the links")
    await school.page.get_by_role("heading", name="1 link").wait_for()
    await school.click("Organize")
    done = ("people", "rooms", "holidays", "campaign", "courses", "invitations")
    await expect_done(school.page, *done)
    await school.click("Rooms and devices")
    await shown(school.page, "led by Anna Vogel").wait_for()
    await school.click("Organize")
    await school.click("Clubs in spring")


@step("Check and publish")
async def publish(school: School) -> None:
    await shown(school.page, "12 courses are drafts").wait_for()
    await school.picture("before", height=1000)
    await school.click("Publish")
    await school.page.get_by_role("link", name="Live view").wait_for()
    await expect(school.page.get_by_role("cell", name="Ready")).to_have_count(12)


async def open_course(school: School, title: str) -> None:
    """Open the page of a course from the page of its booking period."""
    await school.click("Organize")
    await school.click("Clubs in spring")
    await school.click(title)
    await school.page.get_by_role("heading", name=title).wait_for()
    await school.wait_until_read()


@step("Watch the rush")
async def watch_the_rush(school: School) -> None:
    school.set_server_clock(JUST_BEFORE)
    await school.set_passwords(270)
    await school.book_by_minute([(f"2031-02-04T{time}", count) for time, count in MINUTES])
    await school.wait_until(RUSH)
    await school.click("Organize")
    await school.click("Live view")
    await school.page.get_by_role("heading", name="Courses, fullest first").wait_for()
    await school.picture("monitor", height=1000)


@step("Move a pupil")
async def move_a_pupil(school: School) -> None:
    await open_course(school, "Chess")
    row = school.page.locator("[aria-labelledby=roster] li").first
    name = await row.locator("strong").inner_text()
    await school.click("Move", row)
    theatre = await row.locator("option", has_text="Theatre").get_attribute("value")
    await school.page.get_by_label("Move to", exact=True).select_option(theatre)
    await school.picture("move")
    await row.get_by_role("button", name="Move", exact=True).click()
    await shown(school.page, "Now in Theatre").wait_for()
    await open_course(school, "Theatre")
    await shown(school.page, name).first.wait_for()


@step("Use the waiting list")
async def use_the_waiting_list(school: School) -> None:
    await open_course(school, "Robotics")
    line = school.page.locator("[aria-labelledby=waiting] li")
    first = await line.first.locator("strong").inner_text()
    await school.click("Book for somebody")
    await school.fill("Name or email address", school.late_pupil)
    await school.click("Join waiting list")
    await line.filter(has_text=school.late_pupil).wait_for()
    await school.click("Take away")
    await school.click("Take it away")
    await school.page.locator("[aria-labelledby=roster] li", has_text=first).wait_for()


@step("Find pupils without a place")
async def find_unplaced(school: School) -> None:
    await school.click("Clubs in spring")
    await school.click("Live view")
    await school.click("See names")
    await shown(school.page, "waits for Robotics").first.wait_for()
    async with school.page.expect_download() as saved:
        await school.click("Save as CSV")
    assert "Robotics" in (await (await saved.value).path()).read_text(encoding="utf-8-sig")


@step("Change or cancel a course")
async def change_a_course(school: School) -> None:
    await open_course(school, "Cooking")
    await school.click("Change")
    await school.fill("Where (free text)", "Bring an apron")
    await school.click("Save")
    await shown(school.page, "Bring an apron").first.wait_for()
    await open_course(school, "Badminton")
    await school.click("Cancel the course")
    await school.click("Yes, cancel the course")
    await shown(school.page, "Does not take place").wait_for()


@step("Print the sign-in sheets")
async def print_sheets(school: School) -> None:
    await school.wait_until(FIRST_DAY)
    await school.click("Organize")
    await school.click("Clubs in spring")
    await download_sheets(school)
    await open_course(school, "Robotics")
    await download_sheets(school)


async def download_sheets(school: School) -> None:
    """Download the sign-in sheets of the page, and check that they are a PDF file."""
    await school.wait_until_read()
    async with school.page.expect_download() as saved:
        await school.click("Sign-in sheets (PDF)")
    assert (await (await saved.value).path()).read_bytes().startswith(b"%PDF")


@step("Check in at the door")
async def check_in(school: School) -> None:
    await school.page.set_viewport_size({"width": 360, "height": 720})
    await school.click("Organize")
    await school.click("Check-in")
    await shown(school.page, "25 expected").first.wait_for()
    await school.picture("door", height=720)
    await school.click("Robotics")
    row = school.page.locator("li", has=school.page.get_by_role("button", name="Let in")).first
    name = (await row.locator("p").inner_text()).splitlines()[0]
    await school.fill("Name, or code of a hand scanner", name)
    await school.page.keyboard.press("Enter")
    await school.page.locator(".verdict.yours", has_text=name.split(", ")[-1]).wait_for()
    await school.picture("check-in", height=720)
    await school.click("Undo")
    await shown(school.page, "The check-in is undone.").wait_for()
    for count in range(1, 21):
        await school.click("Let in")
        await shown(school.page, f"{count} of 25 here").first.wait_for()


@step("Record who did not come")
async def record_absences(school: School) -> None:
    await school.wait_until(END_OF_LESSON)
    await school.click("Mark all 5 missing as absent")
    await school.click("Mark as absent")
    await shown(school.page, "Absent").nth(4).wait_for()
    await school.click("Done")
    await school.page.set_viewport_size(WINDOW)


@step("Help one pupil")
async def help_one_pupil(school: School) -> None:
    await school.click("Organize")
    await school.click("People")
    await school.fill("Name or email address", school.late_pupil)
    given_name, family_name = school.late_pupil.split()
    await school.page.get_by_role("link", name=f"{family_name}, {given_name}").click()
    await school.fill("Groups, with commas between them", "5a, band")
    await school.click("Save")
    await shown(school.page, "Saved.").wait_for()
    await school.click("Create a link")
    await school.page.get_by_label(f"Link for {school.late_pupil}").wait_for()
    await school.click("Sign out everywhere")
    await shown(school.page, "Signed out on 0 devices.").wait_for()
    await school.click("Block")
    await school.click("Unblock")
    await school.page.get_by_role("button", name="Block", exact=True).wait_for()


@step("Copy it to next year")
async def copy_to_next_year(school: School) -> None:
    await school.click("Organize")
    await school.click("Copy")
    await school.fill("Name of the copy", "Clubs in spring 2032")
    await school.click("Check first")
    await shown(school.page, "No problems found.").wait_for()
    await school.picture("copy", top="form", height=810)
    await school.click("Copy now")
    await school.page.get_by_role("heading", name="Clubs in spring 2032").wait_for()
    await expect(school.page.locator("tbody tr")).to_have_count(len(COURSES) - 1)
