"""Lists of slots: what is over, filters, orders, meetings, eligibility and counts."""

import secrets
from typing import Any

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import GraphQLTestClient, Json, hours_from_now, times_in
from tests.support.clients.fixtures import Three

SLOTS = """query(
  $filter: SlotsFilter, $order: SlotOrder! = START_ASC, $first: Int! = 50, $after: String
) {
  slots(filter: $filter, orderBy: $order, first: $first, after: $after) {
    totalCount nodes { id title } pageInfo { hasNextPage endCursor }
  }
}"""
ELIGIBILITY = """query($title: String!) {
  slots(filter: {text: $title, includePast: true}) {
    nodes { id myEligibility { mayBook refusal {
      __typename code message ... on NotYetOpen { opensAt slot { title } }
      ... on AlreadyBooked { booking { id } }
    } } }
  }
}"""
REQUEST_BOOKING = """mutation($input: BookSlotInput!) {
  requestBooking(input: $input) { __typename ... on Refusal { code message } }
}"""
MEETINGS = """query($id: ID!, $from: DateTime, $until: DateTime, $first: Int! = 500) {
  slot(id: $id) { meetings(from: $from, until: $until, first: $first) { startTime } }
}"""
TIMETABLE = {
    "first": "2031-01-06",
    "last": "2031-03-31",
    "holidays": ["2031-02-03"],
    "weekly": [{"weekday": "MONDAY", "startTime": "09:00", "endTime": "10:00"}],
}


async def titles(client: GraphQLTestClient, order: str = "START_ASC", **wanted: Any) -> list[str]:
    """Return the titles of the slots that a filter selects."""
    page = await client.execute(SLOTS, filter=wanted, order=order)
    return [slot["title"] for slot in page["nodes"]]


async def add_course(organizer: BookingClient, **fields: Any) -> str:
    """Create a course on Mondays in Berlin. Return its id."""
    created = await organizer.execute(
        "mutation($input: CreateSlotInput!) { createSlot(input: $input) { ... on Slot { id } } }",
        input={"title": "Choir", "timeZone": "Europe/Berlin", "timetable": TIMETABLE, **fields},
    )
    return str(created["id"])


async def test_slots_that_are_over_are_listed_only_on_request(clients: Three) -> None:
    ada, _, organizer = clients
    series = secrets.token_hex(8)
    for name, begin, end in (("over", -3, -2), ("now", -1, 1), ("later", 1, 2)):
        fields = {"resource": series + name, "choiceGroup": series, "allowPast": True}
        await organizer.add_slot(title=name, **fields, **times_in(begin, end - begin))
    assert await titles(ada, choiceGroup=series) == ["now", "later"]
    assert await titles(ada, "START_DESC", choiceGroup=series) == ["later", "now"]
    assert await titles(ada, choiceGroup=series, includePast=True) == ["over", "now", "later"]
    assert await titles(ada, resource=f"{series}now") == ["now"]
    assert await titles(ada, resource=f"{series}over") == []
    assert await titles(ada, choiceGroup=series.upper()) == []


async def test_a_weekly_course_is_found_in_the_week_of_its_third_meeting(clients: Three) -> None:
    ada, _, organizer = clients
    group = secrets.token_hex(8)
    await add_course(organizer, choiceGroup=group)

    async def found(begin: str, end: str) -> bool:
        period = {"meetsFrom": f"2031-{begin}+01:00", "meetsBefore": f"2031-{end}+01:00"}
        return await titles(ada, choiceGroup=group, **period) == ["Choir"]

    assert await found("01-20T00:00:00", "01-27T00:00:00")
    assert not await found("01-28T00:00:00", "02-03T00:00:00")  # from Tuesday to Sunday
    assert not await found("02-03T00:00:00", "02-04T00:00:00")  # a holiday
    assert not await found("01-20T10:00:00", "01-27T09:00:00")  # the ends are not included
    assert await found("01-20T09:59:59", "01-20T12:00:00")
    backward = {"meetsFrom": "2031-01-20T00:00:00Z", "meetsBefore": "2031-01-20T00:00:00Z"}
    assert await ada.error_code(SLOTS, filter=backward) == "BAD_USER_INPUT"


async def test_titles_order_pages_whose_cursors_belong_to_their_order(clients: Three) -> None:
    ada, _, organizer = clients
    group = secrets.token_hex(8)
    in_order = ["apple", "Éclair", "eclair", "Zoo", "绘画", "书法"]
    for title in ("Zoo", "Éclair", "书法", "apple", "绘画", "eclair"):
        await organizer.add_slot(title=title, choiceGroup=group)
    wanted = {"choiceGroup": group}
    assert await titles(ada, "TITLE_ASC", **wanted) == in_order
    assert await titles(ada, "TITLE_DESC", **wanted) == in_order[::-1]
    page = await ada.execute(SLOTS, filter=wanted, order="TITLE_ASC", first=2)
    end = page["pageInfo"]["endCursor"]
    rest = await ada.execute(SLOTS, filter=wanted, order="TITLE_ASC", first=4, after=end)
    assert [slot["title"] for slot in (*page["nodes"], *rest["nodes"])] == in_order
    assert (page["pageInfo"]["hasNextPage"], rest["pageInfo"]["hasNextPage"]) == (True, False)
    assert await ada.error_code(SLOTS, filter=wanted, after=end) == "BAD_USER_INPUT"


async def add_slots_of_every_refusal(
    ada: BookingClient, ben: BookingClient, organizer: BookingClient, **common: Any
) -> None:
    """Create slots that Ada may book, and slots for each reason for which she may not."""
    group = secrets.token_hex(4)
    later = {"opensAt": hours_from_now(5), "closesAt": hours_from_now(20)}
    over = {"opensAt": hours_from_now(-5), "closesAt": hours_from_now(-2), "allowPast": True}
    others = {"eligibleGroups": [["nobody"]]}
    await organizer.add_slot(capacity=2, **common)
    full = await organizer.add_slot(**common)
    booked = await organizer.add_slot(capacity=2, choiceGroup=group, **common)
    await organizer.book_slot(full, userId=await ben.fetch_user_id())
    await organizer.book_slot(booked, userId=await ada.fetch_user_id())
    await organizer.add_slot(choiceGroup=group, **common)
    await organizer.add_slot(**times_in(-1, 2), **common)
    for terms in (later, over, others):
        campaign_id = await create_campaign(organizer, **terms)
        await organizer.add_slot(campaignId=campaign_id, **common)
    limits = [{"group": "class:*", "limit": 1}]
    await organizer.add_slot(capacity=3, groupLimits=limits, **common)


@pytest.mark.parametrize("admission", ["ANY", "QUEUE_ONLY"])
async def test_the_eligibility_is_the_result_of_booking(clients: Three, admission: str) -> None:
    ada, ben, organizer = clients
    title = secrets.token_hex(8)
    await add_slots_of_every_refusal(ada, ben, organizer, title=title, admission=admission)
    listed = (await ada.execute(ELIGIBILITY, title=title))["nodes"]
    bookable = (await ada.execute(SLOTS, filter={"text": title, "bookableByMe": True}))["nodes"]
    codes = set()
    for slot in listed:
        eligibility, refusal = slot["myEligibility"], slot["myEligibility"]["refusal"]
        assert eligibility["mayBook"] is (refusal is None)
        assert (slot["id"] in [each["id"] for each in bookable]) is eligibility["mayBook"]
        if admission == "QUEUE_ONLY":
            outcome = await ada.execute(REQUEST_BOOKING, input={"slotId": slot["id"]})
        else:
            outcome = await ada.book_slot(slot["id"])
        if refusal is None:
            assert outcome["__typename"] in ("Booked", "Ticket")
            continue
        codes.add(refusal["code"])
        for name in ("__typename", "code", "message"):
            assert refusal[name] == outcome[name]
    assert len(bookable) == 2
    assert codes == {
        *("SLOT_FULL", "ALREADY_BOOKED", "LIMIT_REACHED", "SLOT_STARTED"),
        *("NOT_YET_OPEN", "CLOSED", "NOT_ELIGIBLE"),
    }


async def test_an_anonymous_client_has_no_eligibility(app: AppProcess, clients: Three) -> None:
    organizer, title = clients[2], secrets.token_hex(8)
    anonymous = GraphQLTestClient(organizer.http, app.url)
    await organizer.add_slot(title=title)
    (slot,) = (await anonymous.execute(ELIGIBILITY, title=title))["nodes"]
    assert slot["myEligibility"] is None
    wanted: Json = {"bookableByMe": True}
    assert await anonymous.error_code(SLOTS, filter=wanted) == "UNAUTHENTICATED"
    cancelled = {**wanted, "status": "CANCELLED"}
    assert await organizer.error_code(SLOTS, filter=cancelled) == "BAD_USER_INPUT"


async def test_pages_of_bookable_slots_may_be_short_and_lead_to_all_of_them(clients: Three) -> None:
    ada, ben, organizer = clients
    title = secrets.token_hex(8)
    ids = [await organizer.add_slot(title=title, capacity=2) for _ in range(7)]
    for slot_id in ids[1::2]:
        await ada.book_slot(slot_id)
    wanted, found, after = {"text": title, "bookableByMe": True}, list[str](), None
    for _ in range(10):
        page = await ada.execute(SLOTS, filter=wanted, first=2, after=after)
        assert page["totalCount"] is None
        found += [slot["id"] for slot in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    assert sorted(found) == sorted(ids[::2])
    assert len(await titles(ben, text=title, bookableByMe=True)) == 7


async def test_meetings_are_those_of_a_period_up_to_a_number(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await add_course(organizer)

    async def starts(**arguments: Any) -> list[str]:
        found = await ada.execute(MEETINGS, id=slot_id, **arguments)
        return [meeting["startTime"][5:10] for meeting in found["meetings"]]

    every = await starts()
    assert (len(every), every[:3]) == (12, ["01-06", "01-13", "01-20"])
    week = {"from": "2031-01-20T00:00:00+01:00", "until": "2031-01-27T00:00:00+01:00"}
    assert await starts(**week) == ["01-20"]
    assert await starts(first=2) == every[:2]
    assert await starts(**{"from": week["until"]}, first=1) == ["01-27"]
    for first in (0, 501):
        assert await ada.error_code(MEETINGS, id=slot_id, first=first) == "BAD_USER_INPUT"


async def test_lists_that_are_cheap_to_count_say_how_many_items_they_have(clients: Three) -> None:
    ada, ben, organizer = clients
    group = secrets.token_hex(8)
    ids = [await organizer.add_slot(location=group, capacity=2) for _ in range(3)]
    for slot_id in ids[:2]:
        await ada.book_slot(slot_id)
    ended = (await ben.book_slot(ids[0]))["booking"]["id"]
    assert (await ada.execute(SLOTS, filter={"text": group}, first=1))["totalCount"] == 3
    roster = "query($id: ID!) { slotRoster(slotId: $id, first: 1) { totalCount } }"
    history = "query($id: ID!) { slotHistory(slotId: $id, first: 1) { totalCount } }"
    assert await organizer.execute(roster, id=ids[0]) == {"totalCount": 2}
    await ben.cancel_booking(ended)
    assert await organizer.execute(roster, id=ids[0]) == {"totalCount": 1}
    assert await organizer.execute(history, id=ids[0]) == {"totalCount": 1}
    assert await ada.execute("{ myBookings(first: 1) { totalCount } }") == {"totalCount": 2}
    assert await ben.execute("{ myEndedBookings { totalCount } }") == {"totalCount": 1}
    assert await ada.execute("{ myWaitlistEntries { totalCount } }") == {"totalCount": 0}
    assert await ada.execute("{ myTickets { totalCount } }") == {"totalCount": 0}
    assert await organizer.execute("{ users(first: 1) { totalCount } }") == {"totalCount": None}
