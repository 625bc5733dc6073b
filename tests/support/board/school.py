"""A school of 300 pupils for the guide of organizers, on an app whose clock the test sets."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo

import httpx
from PIL import Image
from playwright.async_api import BrowserContext, FilePayload, Locator, Page, ViewportSize

from bench.board.opening import WRONG_CLOCK
from tests.support.apps.skewed_apps import SkewedApp
from tests.support.clients.booking_client import BookingClient

T = TypeVar("T")
BERLIN = ZoneInfo("Europe/Berlin")
SECRETARY = ("Ms Keller", "keller@park.example", "a very quiet morning")
SITE_NAME = "Park School"
CLASSES = [f"{year}{letter}" for year in (5, 6, 7) for letter in "abcd"]
CLASS_SIZE = 25
WINDOW: ViewportSize = {"width": 1100, "height": 760}
FIRST_NAMES = """
Ada Ali Amira Anna Ben Björn Carla Clara David Ela Elif Emil Emma Felix Finn Greta Hana Ida
Ivan Jana Jonas Juna Karl Lea Leo Lina Luis Mara Maja Mika Mila Nele Noah Ole Paul Pia Rosa
Sami Theo Tom Yara Zoe
"""
LAST_NAMES = """
Arslan Bauer Becker Braun Brandt Demir Fischer Frank Graf Groß Haas Hahn Hofmann Jansen Kaya
Keller Koch König Krüger Lang Lehmann Lorenz Maier Möller Nowak Otto Peters Pohl Richter Roth
Schäfer Schulz Seidel Simon Sommer Stein Vogel Voß Weber Winter Wolf Yilmaz Zimmermann
"""
# Monday: the campaign is planned. Its courses begin two weeks later.
PLANNING, JUST_BEFORE, OPENING = "2031-02-03T09:10", "2031-02-04T13:58", "2031-02-04T14:00"
RUSH, FIRST_DAY, END_OF_LESSON = "2031-02-04T14:06", "2031-02-17T14:50", "2031-02-17T16:20"
# How many pupils book in each minute of the rush.
MINUTES = [
    ("14:00", 120),
    ("14:01", 60),
    ("14:02", 35),
    ("14:03", 25),
    ("14:04", 18),
    ("14:05", 12),
]
ROOMS = ["Art room", "Computer room", "Garden", "Gym", "Kitchen", "Lab", "Library", "Music room"]
TEACHER = "Ms. Vogel"
# Each course with its room, its day and its time.
COURSES = [
    ("Robotics", "Computer room", "MONDAY", "15:00", "16:30"),
    ("Pottery", "Art room", "MONDAY", "15:00", "16:30"),
    ("Volleyball", "Gym", "MONDAY", "15:00", "16:30"),
    ("Choir", "Music room", "TUESDAY", "14:30", "16:00"),
    ("School garden", "Garden", "TUESDAY", "14:30", "16:00"),
    ("Climbing", "Gym", "TUESDAY", "14:30", "16:00"),
    ("Theatre", "Music room", "WEDNESDAY", "15:00", "16:30"),
    ("Science lab", "Lab", "WEDNESDAY", "15:00", "16:30"),
    ("Cooking", "Kitchen", "THURSDAY", "14:30", "16:00"),
    ("Chess", "Library", "THURSDAY", "14:30", "16:00"),
    ("Photography", "Art room", "FRIDAY", "13:30", "15:00"),
    ("Badminton", "Gym", "FRIDAY", "13:30", "15:00"),
]
SET_PASSWORD = """mutation($token: String!, $password: String!) {
  setPassword(token: $token, password: $password) { ... on Session { accessToken } }
}"""
SLOTS = "{ slots(first: 100) { nodes { id title } } }"
# How many want each course, in the order of their dates.
WEIGHTS = (9, 3, 5, 4, 2, 6, 2, 4, 5, 3, 2, 3)
WAITING = 0.6
COLORS = 128
MARGIN = 16


def pupils_file() -> FilePayload:
    """Return the list of all pupils as a German school program exports it."""
    names = [(first, last) for first in FIRST_NAMES.split() for last in LAST_NAMES.split()]
    random.Random(2031).shuffle(names)
    lines = ["Nachname;Vorname;Benutzername;Klasse"]
    for number in range(len(CLASSES) * CLASS_SIZE):
        (first, last), class_name = names[number], CLASSES[number % len(CLASSES)]
        lines.append(f"{last};{first};{class_name}.{number + 1};{class_name}")
    content = "\r\n".join(lines).encode("cp1252", "replace")
    return FilePayload(name="pupils.csv", mimeType="text/csv", buffer=content)


def teachers_file() -> FilePayload:
    """Return the list of the teachers who lead courses."""
    lines = ["Nachname;Vorname;E-Mail;Gruppe;leitet"]
    lines += [f"Vogel;Anna;vogel@park.example;teachers;{TEACHER}", ""]
    content = "\n".join(lines).encode()
    return FilePayload(name="teachers.csv", mimeType="text/csv", buffer=content)


def berlin(text: str) -> datetime:
    """Return the instant of a local time in Berlin."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


@dataclass
class School:
    """The secretary's page and phone, and the pupils."""

    skewed: SkewedApp
    http: httpx.AsyncClient
    context: BrowserContext
    page: Page
    pictures: Path | None = None
    ahead: timedelta = timedelta()
    links: list[str] = field(default_factory=list)
    # Who has set no password, so that somebody else has to book.
    late_pupil: str = ""
    pupils: list[BookingClient] = field(default_factory=list)

    async def wait_until(self, local: str) -> None:
        """Set the clocks of the server and of the device, and load the page again."""
        ahead = berlin(local) - datetime.now(UTC)
        step_ms = int((ahead - self.ahead) / timedelta(milliseconds=1))
        await self.context.add_init_script(WRONG_CLOCK.replace("AHEAD_MS", str(step_ms)))
        self.ahead = ahead
        self.set_server_clock(local)
        await self.page.reload()

    def set_server_clock(self, local: str) -> None:
        """Set the clock of the server only."""
        self.skewed.step_clock((berlin(local) - datetime.now(UTC)).total_seconds())

    async def wait_until_read(self) -> None:
        """Wait until the page has all its rows: those that come later move the buttons down."""
        await self.page.wait_for_selector("main:not(:has(.bones))")

    async def click(self, label: str, within: Locator | None = None) -> None:
        """Click the button or the link with this text."""
        scope = within or self.page.locator("body")
        for_screen_readers = re.compile(rf"^{re.escape(label)}(\s?:.*)?$")
        button = scope.get_by_role("button", name=for_screen_readers)
        await button.or_(scope.get_by_role("link", name=for_screen_readers)).first.click()

    async def fill(self, label: str, text: str, within: Locator | None = None) -> None:
        """Fill the last field with this label."""
        await (within or self.page.locator("body")).get_by_label(label, exact=True).last.fill(text)

    async def picture(self, name: str, top: str = "header", height: int = 760) -> None:
        """Take a picture of the page from this element on, in pixels, if there is a folder."""
        page = self.page
        if self.pictures is None:
            return
        window = page.viewport_size or WINDOW
        await page.set_viewport_size({"width": window["width"], "height": height})
        script = f"e => scrollTo(0, e.getBoundingClientRect().top + scrollY - {MARGIN})"
        await page.locator(top).first.evaluate(script)
        taken = await page.screenshot(animations="disabled", caret="hide")
        await page.set_viewport_size(window)
        image = Image.open(BytesIO(taken)).convert("RGB")
        path = self.pictures / f"{name}.png"
        image.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)

    async def set_passwords(self, count: int) -> None:
        """Let pupils open their invitations and set a password."""

        async def set_password(link: str) -> BookingClient:
            pupil = BookingClient(self.http, self.skewed.app.url)
            token = link.rpartition("/")[2]
            session = await pupil.execute(
                SET_PASSWORD, token=token, password=f"rain over {token[:9]}"
            )
            pupil.token = session["accessToken"]
            return pupil

        for links in batched(self.links[:count]):
            self.pupils += await asyncio.gather(*map(set_password, links))
        random.Random(7).shuffle(self.pupils)

    async def book_by_minute(self, minutes: Sequence[tuple[str, int]]) -> None:
        """Let so many pupils book at each time. Those who find a course full wait for a place."""
        slots = (await self.pupils[0].execute(SLOTS))["nodes"]
        choice = random.Random(11)

        async def book(pupil: BookingClient) -> None:
            while True:
                [number] = choice.choices(range(len(slots)), WEIGHTS)
                outcome = await pupil.book_slot(slots[number]["id"], waitMs=5000)
                if outcome["__typename"] == "Booked":
                    return
                if outcome["code"] == "SLOT_FULL" and choice.random() < WAITING:
                    await pupil.join(slots[number]["id"])
                    return

        pupils = iter(self.pupils)
        for local, count in minutes:
            self.set_server_clock(local)
            for group in batched([*islice(pupils, count)]):
                await asyncio.gather(*map(book, group))


def batched(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield these items in groups of ten, as the machine has few cores."""
    return (items[start : start + 10] for start in range(0, len(items), 10))


Step = Callable[[School], Awaitable[None]]
