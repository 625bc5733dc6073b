"""An object that refers to another one shows it to those who may see it, and null to others."""

import asyncio
import secrets
from typing import Any

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign, unpublish_campaign
from tests.support.clients.client import GraphQLTestClient, Json, open_websocket
from tests.support.clients.fixtures import Four
from tests.support.clients.series import CREATE_SERIES, MONDAY_TIMES, cancel_series
from tests.support.queue.deployment import QueueDeployment, queue_deployment
from tests.support.queue.documents import REQUEST_BOOKING

__all__ = ["queue_deployment"]


MEMBER_COUNT = TEAM_SIZE = 3
WATCH_SLOT = """subscription($slots: [ID!]!) { slotAvailability(slotIds: $slots) {
  slotId version remaining slot { id version remaining myBooking { id } bookedBy { id } }
} }"""
WATCH_VERSION = """subscription($slots: [ID!]!) { slotAvailability(slotIds: $slots) {
  version slot { version }
} }"""
TICKET = "id slotId slot { id title remaining }"
TICKETS = f"""query($id: ID!) {{
  ticket(id: $id) {{ {TICKET} }} node(id: $id) {{ ... on Ticket {{ {TICKET} }} }}
}}"""
WATCH_TICKET = f"subscription($id: ID!) {{ ticket(id: $id) {{ {TICKET} }} }}"
OTHER_BOOKING = "__typename otherBookingId otherBooking { id status slot { id } user { id } }"
BOOK = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  __typename
  ... on LimitReached {{ {OTHER_BOOKING} }} ... on TimeConflict {{ {OTHER_BOOKING} }}
}} }}"""
TICKET_REFUSAL = f"""query($id: ID!) {{ ticket(id: $id) {{
  outcome {{ ... on LimitReached {{ {OTHER_BOOKING} }} }}
}} }}"""
AUDIT_LOG = """query($slot: ID!) { auditLog(filter: {slotId: $slot}) { nodes {
  action bookingId booking { id status slot { id } }
} } }"""
UPDATE_SERIES = """mutation($input: UpdateSlotInput!) { updateSlot(input: $input) {
  ... on Slot { series { slots { nodes { id title } } } }
} }"""
SERIES_PAGE = """query($id: ID!, $first: Int!, $after: String) { node(id: $id) {
  ... on SlotSeries { id slots(first: $first, after: $after) {
    totalCount nodes { id status series { id } } pageInfo { hasNextPage endCursor }
  } }
} }"""


async def test_the_slot_of_an_availability_shows_each_subscriber_what_they_may_see(
    two_apps: Pair, clients: Four
) -> None:
    ada, ben, _, organizer = clients
    slot_id = await organizer.add_slot()
    async with (
        open_websocket(two_apps[0], ada.token) as own,
        open_websocket(two_apps[1], ben.token) as other,
        open_websocket(two_apps[0]) as anonymous,
        open_websocket(two_apps[0], organizer.token) as organizing,
    ):
        watchers = own, other, anonymous, organizing
        for watcher in watchers:
            await watcher.subscribe("1", WATCH_SLOT, slots=[slot_id])
            assert (await watcher.next_result())["slot"]["myBooking"] is None
        booking = (await ada.book_slot(slot_id))["booking"]
        states = [await watcher.next_result() for watcher in watchers]
    booked_by = {"id": await ada.fetch_user_id()}
    shown = [(state["slot"]["myBooking"], state["slot"]["bookedBy"]) for state in states]
    assert shown == [
        ({"id": booking["id"]}, booked_by),
        (None, None),
        (None, None),
        (None, booked_by),
    ]
    for state in states:
        assert (state["slotId"], state["version"], state["remaining"]) == (slot_id, 2, 0)
        assert (state["slot"]["id"], state["slot"]["version"]) == (slot_id, 2)


async def test_the_slot_of_an_availability_is_never_older_than_the_availability(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    members, organizer = create_booking_clients(http, 12, *two_apps)
    slot_id = await organizer.add_slot(capacity=12)
    async with open_websocket(two_apps[0]) as watcher:
        await watcher.subscribe("1", WATCH_VERSION, slots=[slot_id])
        booking = asyncio.gather(*(each.book_slot(slot_id, waitMs=5000) for each in members))
        states = [await watcher.next_result()]
        await booking
        last_version = (await organizer.fetch_slot(slot_id))["version"]
        while states[-1]["version"] < last_version:
            states.append(await watcher.next_result())
    assert all(state["slot"]["version"] >= state["version"] for state in states)


async def test_the_slot_of_an_availability_can_be_hidden(two_apps: Pair, clients: Four) -> None:
    ada, _, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    async with (
        open_websocket(two_apps[0], ada.token) as member,
        open_websocket(two_apps[0], organizer.token) as organizing,
    ):
        for watcher in (member, organizing):
            await watcher.subscribe("1", WATCH_SLOT, slots=[slot_id])
            assert (await watcher.next_result())["slot"]["id"] == slot_id
        await unpublish_campaign(organizer, campaign_id)
        assert (await member.next_result())["slot"] is None
        await organizer.update_slot(slot_id, capacity=3)
        state = await organizing.next_result()
        while state["remaining"] != 3:
            state = await organizing.next_result()
        assert state["slot"]["id"] == slot_id


async def test_a_ticket_shows_its_slot_to_those_who_may(two_apps: Pair, clients: Four) -> None:
    ada, _, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    slot_id = await organizer.add_slot(campaignId=campaign_id, capacity=2)
    ticket_id = (await ada.execute(REQUEST_BOOKING, input={"slotId": slot_id}))["id"]

    async def shown_slots() -> list[Any]:
        found = (await ada.send(TICKETS, id=ticket_id))["data"]
        async with open_websocket(two_apps[0], ada.token) as watcher:
            await watcher.subscribe("1", WATCH_TICKET, id=ticket_id)
            tickets = [found["ticket"], found["node"], await watcher.next_result()]
        assert [(each["id"], each["slotId"]) for each in tickets] == [(ticket_id, slot_id)] * 3
        return [each["slot"] and each["slot"]["id"] for each in tickets]

    assert await shown_slots() == [slot_id] * 3
    await unpublish_campaign(organizer, campaign_id)
    assert await shown_slots() == [None] * 3


async def add_rival_slots(organizer: BookingClient, refusal: str) -> list[str]:
    """Create two slots, of which a user can book one."""
    if refusal == "LimitReached":
        choice_group = secrets.token_hex(8)
        return [await organizer.add_slot(choiceGroup=choice_group) for _ in range(2)]
    campaign_id = await create_campaign(organizer, forbidOverlap=True)
    return [await organizer.add_slot(campaignId=campaign_id) for _ in range(2)]


@pytest.mark.parametrize("refusal", ["LimitReached", "TimeConflict"])
async def test_teammates_do_not_see_the_other_booking_that_led_to_a_refusal(
    clients: Four, refusal: str
) -> None:
    ada, ben, cleo, organizer = clients
    slot_id, rival_id = await add_rival_slots(organizer, refusal)
    ben_id = await ben.fetch_user_id()
    booking = (await ada.book_slot(slot_id, userId=ben_id))["booking"]
    shown = {
        "id": booking["id"],
        "status": "CONFIRMED",
        "slot": {"id": slot_id},
        "user": {"id": ben_id},
    }
    refused = {"slotId": rival_id, "userId": ben_id}
    assert await ben.execute(BOOK, input=refused) == {
        "__typename": refusal,
        "otherBookingId": booking["id"],
        "otherBooking": shown,
    }
    # The booker of the other booking does not see it either: they may have left the team since.
    for teammate in (ada, cleo):
        assert await teammate.execute(BOOK, input=refused) == {
            "__typename": refusal,
            "otherBookingId": None,
            "otherBooking": None,
        }


async def test_the_other_booking_of_a_recorded_refusal_is_shown_as_it_is_now(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    ada = queue_deployment.queue_client(app, 0)
    rivals = await add_rival_slots(queue_deployment.organizer(app), "LimitReached")
    tickets = [(await ada.enqueue(slot_id))["id"] for slot_id in rivals]
    queue_deployment.worker()
    codes = [await ada.wait_for_outcome_code(ticket_id) for ticket_id in tickets]
    refused = codes.index("LIMIT_REACHED")
    booked = (await ada.fetch_ticket(tickets[1 - refused]))["outcome"]["booking"]["id"]
    for status in ("CONFIRMED", "CANCELLED"):
        outcome = (await ada.execute(TICKET_REFUSAL, id=tickets[refused]))["outcome"]
        assert outcome["otherBookingId"] == outcome["otherBooking"]["id"] == booked
        assert outcome["otherBooking"]["status"] == status
        await ada.cancel_booking(booked)


async def test_an_entry_of_the_audit_log_shows_its_booking_live_or_ended(clients: Four) -> None:
    ada, ben, _, organizer = clients
    slot_id = await organizer.add_slot(capacity=2)
    live = (await ada.book_slot(slot_id))["booking"]["id"]
    ended = (await ben.book_slot(slot_id))["booking"]["id"]
    await ben.cancel_booking(ended)
    entries = (await organizer.execute(AUDIT_LOG, slot=slot_id))["nodes"]
    shown = [(each["action"], each["booking"]) for each in entries]
    status = {live: "CONFIRMED", ended: "CANCELLED", None: None}
    assert shown[:3] == [
        ("CANCELLED", {"id": ended, "status": status[ended], "slot": {"id": slot_id}}),
        ("BOOKED", {"id": ended, "status": status[ended], "slot": {"id": slot_id}}),
        ("BOOKED", {"id": live, "status": status[live], "slot": {"id": slot_id}}),
    ]
    assert [each["booking"] and each["booking"]["id"] for each in entries] == [
        each["bookingId"] for each in entries
    ]
    assert entries[-1]["booking"] is None  # the slot was created
    assert await ada.error_code(AUDIT_LOG, slot=slot_id) == "FORBIDDEN"


async def create_series(organizer: BookingClient, **fields: Any) -> Json:
    """Create a series of three slots."""
    slot = {"title": "Yoga", "timeZone": "Europe/Berlin", **MONDAY_TIMES, **fields}
    created: Json = await organizer.execute(
        CREATE_SERIES.replace("seriesId slots", "series { id } seriesId slots", 1),
        input={"slot": slot, "rrule": "FREQ=WEEKLY;COUNT=3"},
    )
    assert created["series"] == {"id": created["seriesId"]}
    return created


async def fetch_series(client: GraphQLTestClient, created: Json, first: int = 100) -> list[Json]:
    """Return the slots of a series, fetched in pages; none if the client sees no such series."""
    nodes: list[Json] = []
    counts: set[int] = set()
    after, has_more = None, True
    while has_more:
        series = await client.execute(SERIES_PAGE, id=created["seriesId"], first=first, after=after)
        if series is None:
            return nodes
        assert series["id"] == created["seriesId"]
        nodes += series["slots"]["nodes"]
        counts.add(series["slots"]["totalCount"])
        assert len(series["slots"]["nodes"]) <= first
        page = series["slots"]["pageInfo"]
        after, has_more = page["endCursor"], page["hasNextPage"]
    assert counts == {len(nodes)}
    return nodes


@pytest.mark.parametrize("first", [1, 2, 3])
async def test_a_series_is_a_node_that_lists_its_slots_in_pages(clients: Four, first: int) -> None:
    ada, _, _, organizer = clients
    created = await create_series(organizer)
    await cancel_series(organizer, created["slots"][1], "THIS")
    expected = [
        {"id": slot["id"], "status": status, "series": {"id": created["seriesId"]}}
        for slot, status in zip(
            created["slots"], ("PUBLISHED", "CANCELLED", "PUBLISHED"), strict=True
        )
    ]
    anonymous = GraphQLTestClient(ada.http, ada.url)
    for client in (ada, anonymous, organizer):
        assert await fetch_series(client, created, first) == expected


async def test_the_response_to_a_change_of_a_series_can_show_all_its_slots(clients: Four) -> None:
    organizer = clients[3]
    created = await create_series(organizer)
    fields = {"slotId": created["slots"][1]["id"], "scope": "ALL", "title": "Pilates"}
    changed = await organizer.execute(UPDATE_SERIES, input=fields)
    assert changed["series"]["slots"]["nodes"] == [
        {"id": slot["id"], "title": "Pilates"} for slot in created["slots"]
    ]


@pytest.mark.parametrize("is_draft", [True, False])
async def test_a_series_without_visible_slots_is_null_except_for_organizers(
    clients: Four, is_draft: bool
) -> None:
    ada, _, _, organizer = clients
    campaign_id = await create_campaign(organizer, published=is_draft)
    created = await create_series(organizer, campaignId=campaign_id, draft=is_draft)
    assert await fetch_series(ada, created) == []
    assert await ada.execute(SERIES_PAGE, id=created["seriesId"], first=1) is None
    assert [slot["id"] for slot in await fetch_series(organizer, created)] == [
        slot["id"] for slot in created["slots"]
    ]


async def test_drafts_of_a_series_are_listed_for_organizers_only(clients: Four) -> None:
    ada, _, _, organizer = clients
    created = await create_series(organizer, draft=True)
    publish = "mutation($id: ID!) { publishSlot(slotId: $id) { __typename } }"
    await organizer.execute(publish, id=created["slots"][2]["id"])
    assert [slot["id"] for slot in await fetch_series(ada, created)] == [created["slots"][2]["id"]]
    assert len(await fetch_series(organizer, created)) == 3
