"""Only organizers, and users with a confirmed booking, see the link of a meeting on the net."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.apps.deployment import app_variant, slot_document
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.booking_events import watch_bookings
from tests.support.clients.calendars import create_calendar, events_by_uid, get_path
from tests.support.clients.client import GraphQLTestClient, open_websocket
from tests.support.clients.fixtures import Five

MEMBER_COUNT = 4
ROOM = "https://meet.example/room,1;a=b?pwd=%2C&x=" + "y" * 200
PUBLIC_URL = "https://school.example"
OTHER_ROOM = "https://meet.example/other"
READ = """query($id: ID!, $text: String!) {
  slot(id: $id) { meetingUrl }
  node(id: $id) { ... on Slot { meetingUrl } }
  slots(filter: {text: $text}) { nodes { meetingUrl } edges { node { meetingUrl } } }
}"""
OWN = """{
  myBookings { nodes { slot { meetingUrl } } }
  myEndedBookings { nodes { slot { meetingUrl } } }
  myWaitlistEntries { nodes { slot { meetingUrl } } }
}"""
BOOK = """mutation($id: ID!) { bookSlot(input: {slotId: $id}) {
  ... on Booked { slot { meetingUrl } }
  ... on SlotFull { slot { meetingUrl } }
} }"""
WATCH = """subscription($id: ID!) { slotAvailability(slotIds: [$id]) {
  remaining slot { meetingUrl }
} }"""
ORGANIZED = "mutation { createCalendarFeed { organizedUrl } }"
BOOKING_CALENDAR = "query($id: ID!) { slot(id: $id) { myBooking { calendarUrl } } }"


async def links_for(client: GraphQLTestClient, slot_id: str, title: str) -> set[str | None]:
    """Return the links that a client reads of a slot."""
    data = (await client.send(READ, id=slot_id, text=title))["data"]
    lists = [*data["slots"]["nodes"], *(edge["node"] for edge in data["slots"]["edges"])]
    return {each["meetingUrl"] for each in (data["slot"], data["node"], *lists)}


async def test_only_a_confirmed_place_shows_the_link(two_apps: Pair, clients: Five) -> None:
    ada, ben, cleo, dan, organizer = clients
    title = secrets.token_hex(8)
    slot_id = await organizer.add_slot(title=title, capacity=2, meetingUrl=f" {ROOM} ")
    anonymous = GraphQLTestClient(ada.http, ada.url)
    async with open_websocket(two_apps[0], dan.token) as socket:
        await socket.subscribe("1", WATCH, id=slot_id)
        seen = [await socket.next_result()]
        assert (await ada.execute(BOOK, id=slot_id))["slot"]["meetingUrl"] == ROOM
        hold = await ben.hold(slot_id)
        await cleo.join(slot_id)
        assert (await dan.execute(BOOK, id=slot_id)) == {"slot": {"meetingUrl": None}}
        while seen[-1]["remaining"]:
            seen.append(await socket.next_result())
    assert {each["slot"]["meetingUrl"] for each in seen} == {None}
    for reader in (ada, organizer):
        assert await links_for(reader, slot_id, title) == {ROOM}
    others: tuple[GraphQLTestClient, ...] = (anonymous, ben, cleo, dan)
    for client in others:
        assert await links_for(client, slot_id, title) == {None}
        assert ROOM[:30] not in str(await client.send(OWN))
    await ben.confirm(hold["id"])
    assert await links_for(ben, slot_id, title) == {ROOM}
    await ben.cancel_booking(hold["id"])  # Cleo has the place now
    assert await links_for(ben, slot_id, title) == {None}
    assert await links_for(cleo, slot_id, title) == {ROOM}
    own = (await cleo.send(OWN))["data"]
    assert own["myBookings"]["nodes"] == [{"slot": {"meetingUrl": ROOM}}]
    await organizer.cancel_slot(slot_id)
    assert await links_for(cleo, slot_id, title) == {None}
    assert slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)["meetingUrl"]


async def test_a_new_link_is_an_event_for_a_confirmed_place_only(
    two_apps: Pair, clients: Five
) -> None:
    ada, ben, _, _, organizer = clients
    slot_id = await organizer.add_slot(capacity=2, meetingUrl=ROOM)
    await ada.book_slot(slot_id)
    await ben.hold(slot_id)
    async with (
        watch_bookings(two_apps[0], ada, organizer) as adas,
        watch_bookings(two_apps[1], ben, organizer) as bens,
    ):
        await organizer.update_slot(slot_id, meetingUrl=OTHER_ROOM)
        edit = {"field": "meetingUrl", "before": ROOM, "after": OTHER_ROOM}
        assert (await adas.next_event())["edits"] == [edit]
        await organizer.update_slot(slot_id, location="Hall")
        assert [each["field"] for each in (await bens.next_event())["edits"]] == ["location"]


@pytest.fixture
def public_app(two_apps: Pair, tmp_path: Path) -> Iterator[AppProcess]:
    """Yield an app whose board has an address."""
    environment = {**two_apps[0].environment, "SLOTLOCK_PUBLIC_URL": PUBLIC_URL}
    with app_variant(environment, tmp_path) as running:
        yield running


async def test_calendars_have_the_link_and_the_text_for_their_readers(
    public_app: AppProcess, http: httpx.AsyncClient
) -> None:
    (ada, ben), organizer = create_booking_clients(http, 2, public_app)
    text = "Bring *mats*, water;\r\nand C:\\towels \U0001f9d8 " + "x" * 1_000
    fields = {"capacity": 3, "meetingUrl": ROOM}
    slot_id = await organizer.add_slot(**fields, description=text)
    other_id = await organizer.add_slot(**fields, location="Hall", description="A")
    for user in (ada, organizer):
        await user.book_slot(slot_id)
        await user.book_slot(other_id)
    await ben.hold(slot_id)
    shown = f"{text[:1_000]} …".replace("\r\n", "\n")
    page, other_page = (f"{PUBLIC_URL}/board#/slot/{id_}" for id_ in (slot_id, other_id))
    feed = await create_calendar(ada)
    single = (await ada.execute(BOOKING_CALENDAR, id=slot_id))["myBooking"]["calendarUrl"]
    organized = (await organizer.execute(ORGANIZED))["organizedUrl"]
    of_booking = f"{shown}\n\n{ROOM}\n\nYour booking, also to give it back:\n{page}"
    assert await event_at(ada, feed, page) == (ROOM, ROOM, of_booking)
    assert await event_at(ada, single, page) == (ROOM, ROOM, of_booking)
    other = f"A\n\n{ROOM}\n\nYour booking, also to give it back:\n{other_page}"
    assert await event_at(ada, feed, other_page) == (ROOM, "Hall", other)
    of_slot = f"{shown}\n\n{ROOM}\n\n{page}"
    assert await event_at(organizer, organized, page) == (ROOM, ROOM, of_slot)
    public = (None, "Hall", f"A\n\n{other_page}")
    assert await event_at(organizer, "/calendars/published.ics", other_page) == public
    held = f"{shown}\n\nYour booking, also to give it back:\n{page}"
    assert await event_at(ben, await create_calendar(ben), page) == (None, None, held)
    raw = (await get_path(ada, feed.removeprefix(PUBLIC_URL))).content
    assert max(map(len, raw.split(b"\r\n"))) <= 75


async def event_at(
    reader: BookingClient, path: str, page: str
) -> tuple[str | None, str | None, str]:
    """Return the URL, the place and the text of the event of a slot in a calendar."""
    events = (await events_by_uid(reader, path.removeprefix(PUBLIC_URL))).values()
    (event,) = (each for each in events if each["DESCRIPTION"].endswith(page))
    return event.get("URL"), event.get("LOCATION"), str(event["DESCRIPTION"])


async def test_a_text_that_changes_is_a_newer_event(clients: Five) -> None:
    ada, *_, organizer = clients
    slot_id = await organizer.add_slot(description="old")
    await ada.book_slot(slot_id)
    path = await create_calendar(ada)
    (before,) = (await events_by_uid(ada, path)).values()
    await organizer.update_slot(slot_id, description="new")
    (after,) = (await events_by_uid(ada, path)).values()
    assert (str(before["DESCRIPTION"])[:3], str(after["DESCRIPTION"])[:3]) == ("old", "new")
    assert after["SEQUENCE"] > before["SEQUENCE"]
