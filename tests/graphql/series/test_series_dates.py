"""Adding dates to a series and removing dates from it, over GraphQL."""

import secrets
from typing import Any

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.booking_events import watch_bookings
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import WATCH_AVAILABILITY, Json, open_websocket
from tests.support.clients.fixtures import Two
from tests.support.clients.series import (
    RESOURCE_TAKEN_FRAGMENT,
    SERIES_SLOT_FRAGMENT,
    create_series,
    fetch_series_slots,
    start_times,
)

MEMBER_COUNT = 1


ADD_DATES = f"""mutation($input: AddSeriesDatesInput!) {{ addSeriesDates(input: $input) {{
  __typename ... on Refusal {{ code message }}
  ... on SeriesDatesAdded {{
    series {{ id slots(first: 9) {{ nodes {{ id }} }} }}
    slots {{ ...S description holdMinutes }} existing {{ id }} conflicts {{ code ...T }}
  }}
  ... on SeriesConflicts {{ conflicts {{ ...T }} }}
  ... on InvalidInput {{ fields {{ field message }} }}
}} }} {SERIES_SLOT_FRAGMENT} {RESOURCE_TAKEN_FRAGMENT}"""
REMOVE_DATES = """mutation($input: RemoveSeriesDatesInput!) { removeSeriesDates(input: $input) {
  __typename ... on Refusal { code }
  ... on SeriesDatesRemoved {
    series { slots(first: 9) { nodes { id status } } } deletedSlotIds cancelled { id status }
  }
  ... on SlotsHaveBookings { slots { id } }
  ... on SlotNotFound { slotId }
  ... on InvalidInput { fields { field } }
} }"""
AUDIT_LOG = """query($slot: ID!) { auditLog(filter: {slotId: $slot}) {
  nodes { action by { id } edits { field before after } }
} }"""
APRIL = ["2031-04-14T09:00:00+02:00", "2031-04-21T09:00:00+02:00"]
LAST_OF_MARCH = "2031-03-31T09:00:00+02:00"


async def add_dates(client: BookingClient, series: Json, *starts: str, **options: Any) -> Json:
    """Add dates to a series and return the result."""
    fields = {"seriesId": series["seriesId"], "startTimes": [*starts], **options}
    outcome: Json = await client.execute(ADD_DATES, input=fields)
    return outcome


async def remove_dates(client: BookingClient, series: Json, *ids: str, **options: Any) -> Json:
    """Remove slots from a series and return the result."""
    fields = {"seriesId": series["seriesId"], "slotIds": [*ids], **options}
    outcome: Json = await client.execute(REMOVE_DATES, input=fields)
    return outcome


def slot_ids(series: Json) -> list[str]:
    """Return the ids of the slots of a new series."""
    return [slot["id"] for slot in series["slots"]]


async def fetch_edits(organizer: BookingClient, slot_id: str, action: str) -> list[Json]:
    """Return the edits of the organizer's action on a slot from the audit log."""
    nodes = (await organizer.execute(AUDIT_LOG, slot=slot_id))["nodes"]
    (entry,) = (node for node in nodes if node["action"] == action)
    assert entry["by"]["id"] == await organizer.fetch_user_id()
    edits: list[Json] = entry["edits"]
    return edits


async def test_new_dates_are_published_copies_that_users_can_book(clients: Two) -> None:
    ada, organizer = clients
    campaign_id = await create_campaign(organizer, name="Spring")
    settings: Json = {"capacity": 7, "description": "# Mats", "holdMinutes": 9}
    settings |= {"resource": f"Room {secrets.token_hex(4)}", "campaignId": campaign_id}
    series = await create_series(organizer, **settings)
    added = await add_dates(organizer, series, APRIL[1], LAST_OF_MARCH, APRIL[0])
    assert added["__typename"] == "SeriesDatesAdded", added
    assert start_times(added["slots"]) == ["04-14T07:00", "04-21T07:00"]
    new, old = added["slots"][0], series["slots"][0]
    of_each_slot = {"id", "startTime", "endTime"}
    assert {name: new[name] for name in old.keys() - of_each_slot} == {
        name: old[name] for name in old.keys() - of_each_slot
    }
    assert (new["endTime"][5:16], new["description"]) == ("04-14T08:00", "# Mats")
    assert (new["holdMinutes"], new["campaign"]) == (9, {"id": campaign_id})
    assert added["existing"] == [{"id": slot_ids(series)[2]}]
    assert len(await fetch_series_slots(ada, series)) == 6
    assert len(added["series"]["slots"]["nodes"]) == 6
    assert (await ada.book_slot(new["id"]))["__typename"] == "Booked"
    edits = await fetch_edits(organizer, new["id"], "SLOT_CREATED")
    assert {"field": "description", "before": None, "after": "# Mats"} in edits


async def test_a_repeated_request_adds_nothing(clients: Two) -> None:
    _, organizer = clients
    series, key = await create_series(organizer), secrets.token_hex(8)
    added = await add_dates(organizer, series, *APRIL, idempotencyKey=key)
    assert await add_dates(organizer, series, *APRIL, idempotencyKey=key) == added
    reused = await add_dates(organizer, series, APRIL[0], idempotencyKey=key)
    assert reused["code"] == "KEY_REUSED"
    without_key = await add_dates(organizer, series, *APRIL)
    assert (without_key["slots"], len(without_key["existing"])) == ([], 2)


async def test_dates_on_which_a_resource_is_taken_are_refused_or_skipped(clients: Two) -> None:
    _, organizer = clients
    room = f"Room {secrets.token_hex(4)}"
    series = await create_series(organizer, resource=room)
    taken = {"startTime": "2031-04-14T09:30:00+02:00", "endTime": "2031-04-14T11:00:00+02:00"}
    other_id = await organizer.add_slot(resource=room, **taken)
    refused = await add_dates(organizer, series, *APRIL)
    assert refused["code"] == "SERIES_CONFLICTS"
    assert [each["other"]["id"] for each in refused["conflicts"]] == [other_id]
    assert len(await fetch_series_slots(organizer, series)) == 4
    key = secrets.token_hex(8)
    options = {"onConflict": "SKIP_CONFLICTS", "idempotencyKey": key}
    skipped = await add_dates(organizer, series, *APRIL, **options)
    assert start_times(skipped["slots"]) == ["04-21T07:00"]
    assert [each["other"]["id"] for each in skipped["conflicts"]] == [other_id]
    assert await add_dates(organizer, series, *APRIL, **options) == skipped


async def test_invalid_dates_and_unknown_series_are_refused(clients: Two) -> None:
    ada, organizer = clients
    series = await create_series(organizer)
    for starts in ([], ["2024-03-18T09:00:00Z"], ["2041-03-18T09:00:00Z"]):
        invalid = await add_dates(organizer, series, *starts)
        assert [each["field"] for each in invalid["fields"]] == ["startTimes"]
    for unknown in ("series_" + "0" * 24, "slot_1"):
        missing = await add_dates(organizer, {"seriesId": unknown}, *APRIL)
        assert missing["code"] == "SERIES_NOT_FOUND"
        missing = await remove_dates(organizer, {"seriesId": unknown}, slot_ids(series)[0])
        assert missing["code"] == "SERIES_NOT_FOUND"
    assert (await remove_dates(organizer, series))["fields"] == [{"field": "slotIds"}]
    for mutation, fields in ((ADD_DATES, "startTimes"), (REMOVE_DATES, "slotIds")):
        body = {"seriesId": series["seriesId"], fields: []}
        assert await ada.error_code(mutation, input=body) == "FORBIDDEN"


async def test_a_deleted_resource_of_the_copied_slot_is_named(clients: Two) -> None:
    _, organizer = clients
    room = f"Room {secrets.token_hex(4)}"
    past = {"startTime": "2024-03-18T09:00:00Z", "endTime": "2024-03-18T10:00:00Z"}
    series = await create_series(
        organizer, "FREQ=DAILY;COUNT=1", resource=room, allowPast=True, **past
    )
    resource = "query($text: String!) { resources(text: $text) { nodes { id } } }"
    (found,) = (await organizer.execute(resource, text=room))["nodes"]
    delete = "mutation($id: ID!) { deleteResource(resourceId: $id) { __typename } }"
    assert (await organizer.execute(delete, id=found["id"]))["__typename"] == "ResourceDeleted"
    invalid = await add_dates(organizer, series, "2028-03-18T09:00:00Z")
    assert room in invalid["fields"][0]["message"]


async def test_unbooked_dates_are_deleted_and_watchers_see_it(clients: Two, two_apps: Pair) -> None:
    _, organizer = clients
    series = await create_series(organizer)
    first, second, third, fourth = slot_ids(series)
    async with open_websocket(two_apps[1]) as watcher:
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[second])
        assert (await watcher.next_result())["status"] == "PUBLISHED"
        removed = await remove_dates(organizer, series, third, second, second)
        assert (await watcher.next_result())["status"] == "CANCELLED"
    assert (removed["deletedSlotIds"], removed["cancelled"]) == ([second, third], [])
    assert [slot["id"] for slot in removed["series"]["slots"]["nodes"]] == [first, fourth]
    edits = await fetch_edits(organizer, third, "SLOT_DELETED")
    assert {"field": "title", "before": "Yoga", "after": None} in edits
    again = await remove_dates(organizer, series, first, second)
    assert (again["code"], again["slotId"]) == ("SLOT_NOT_FOUND", second)
    assert len(await fetch_series_slots(organizer, series)) == 2


async def test_a_repeated_removal_removes_nothing_and_returns_the_same(clients: Two) -> None:
    ada, organizer = clients
    series, key = await create_series(organizer), secrets.token_hex(8)
    first, second, third, _ = slot_ids(series)
    await ada.book_slot(second)
    options = {"cancelBooked": True, "idempotencyKey": key}
    refused = await remove_dates(organizer, series, first, second, idempotencyKey=key)
    assert refused["code"] == "SLOTS_HAVE_BOOKINGS"
    removed = await remove_dates(organizer, series, first, second, **options)
    assert (removed["deletedSlotIds"], len(removed["cancelled"])) == ([first], 1)
    for ids in ((first, second), (second, first)):
        assert await remove_dates(organizer, series, *ids, **options) == removed
    for others in ([first], [first, second, third]):
        reused = await remove_dates(organizer, series, *others, **options)
        assert reused["code"] == "KEY_REUSED"
    only_deleted = await remove_dates(organizer, series, first, second, idempotencyKey=key)
    assert only_deleted["code"] == "KEY_REUSED"
    without_key = await remove_dates(organizer, series, first, second, cancelBooked=True)
    assert without_key["code"] == "SLOT_NOT_FOUND"
    assert await fetch_edits(organizer, second, "SLOT_CANCELLED")  # of one entry
    assert len(await fetch_series_slots(organizer, series)) == 2


async def test_the_removal_of_a_whole_series_is_repeated(clients: Two) -> None:
    _, organizer = clients
    series, key = await create_series(organizer), secrets.token_hex(8)
    removed = await remove_dates(organizer, series, *slot_ids(series), idempotencyKey=key)
    assert removed["deletedSlotIds"] == slot_ids(series)
    again = await remove_dates(organizer, series, *slot_ids(series), idempotencyKey=key)
    assert again == removed


async def test_a_removal_that_changes_nothing_uses_up_its_key(clients: Two) -> None:
    ada, organizer = clients
    series, key = await create_series(organizer), secrets.token_hex(8)
    first, second, *_ = slot_ids(series)
    await ada.book_slot(first)
    removed = await remove_dates(organizer, series, first, cancelBooked=True)
    options = {"cancelBooked": True, "idempotencyKey": key}
    for _ in range(2):
        assert await remove_dates(organizer, series, first, **options) == removed
    reused = await remove_dates(organizer, series, second, **options)
    assert reused["code"] == "KEY_REUSED"


async def test_a_slot_of_another_series_is_not_removed(clients: Two) -> None:
    _, organizer = clients
    series, other = await create_series(organizer), await create_series(organizer)
    refused = await remove_dates(organizer, series, slot_ids(other)[0])
    assert refused["code"] == "SLOT_NOT_FOUND"


async def test_dates_with_bookings_are_listed_and_cancelled_only_on_request(
    clients: Two, two_apps: Pair
) -> None:
    ada, organizer = clients
    series = await create_series(organizer)
    first, second, third, fourth = slot_ids(series)
    booking = (await ada.book_slot(second))["booking"]
    ended = (await ada.book_slot(third))["booking"]
    await ada.cancel_booking(ended["id"])
    refused = await remove_dates(organizer, series, third, first, second)
    assert refused == {
        "__typename": "SlotsHaveBookings",
        "code": "SLOTS_HAVE_BOOKINGS",
        "slots": [{"id": second}, {"id": third}],
    }
    assert len(await fetch_series_slots(organizer, series)) == 4
    async with watch_bookings(two_apps[1], ada, organizer) as watcher:
        removed = await remove_dates(organizer, series, third, first, second, cancelBooked=True)
        assert (await watcher.next_event())["booking"]["id"] == booking["id"]
    cancelled = [{"id": slot_id, "status": "CANCELLED"} for slot_id in (second, third)]
    assert (removed["deletedSlotIds"], removed["cancelled"]) == ([first], cancelled)
    remaining = [*cancelled, {"id": fourth, "status": "PUBLISHED"}]
    assert removed["series"]["slots"]["nodes"] == remaining
    edits = await fetch_edits(organizer, second, "SLOT_CANCELLED")
    assert {"field": "status", "before": "PUBLISHED", "after": "CANCELLED"} in edits
    again = await remove_dates(organizer, series, third, second)
    assert (again["deletedSlotIds"], again["cancelled"]) == ([], cancelled)
    back = await add_dates(organizer, series, series["slots"][1]["startTime"])
    assert start_times(back["slots"]) == start_times([series["slots"][1]])
