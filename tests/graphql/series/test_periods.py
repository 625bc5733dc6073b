"""Periods of a school day over GraphQL, and on the page of the board."""

from collections.abc import AsyncIterator

import pytest

from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.fixtures import Two
from tests.support.clients.series import SET_PERIODS, set_periods

MEMBER_COUNT = 1

PERIODS = "{ periods { name startTime endTime weekdays } }"
SLOT = """query($id: ID!) { slot(id: $id) {
  version startTime endTime meetings { startTime endTime } } }"""
LOG = """{ auditLog(first: 3, filter: {actions: [PERIODS_EDITED]}) {
  nodes { by { name } edits { field before after } } } }"""
# No other slot of the tests is at these times.
THIRD: Json = {"name": "3", "startTime": "04:07", "endTime": "04:49"}
FOURTH: Json = {
    "name": "4",
    "startTime": "04:53",
    "endTime": "05:37",
    "weekdays": ["TUESDAY", "FRIDAY"],
}


@pytest.fixture
async def organizer(clients: Two) -> AsyncIterator[BookingClient]:
    """Return an organizer of a school, which has no periods afterwards."""
    yield clients[1]
    await set_periods(clients[1])


async def test_organizers_replace_the_list_and_everybody_reads_it(
    clients: Two, organizer: BookingClient, anonymous: GraphQLTestClient
) -> None:
    assert await clients[0].error_code(SET_PERIODS, periods=[]) == "FORBIDDEN"
    assert await anonymous.execute(PERIODS) == []
    page = f"{organizer.url}/board"
    assert "periods" not in (await organizer.http.get(page)).text
    assert await set_periods(organizer, FOURTH, THIRD) == 0
    shown = [{**THIRD, "weekdays": []}, FOURTH]
    times = [
        {**each, "startTime": f"{each['startTime']}:00", "endTime": f"{each['endTime']}:00"}
        for each in shown
    ]
    assert await anonymous.execute(PERIODS) == times
    reversed_one = {**THIRD, "name": "5", "endTime": "00:00"}
    refused = await organizer.execute(SET_PERIODS, periods=[THIRD, reversed_one])
    about = [{"name": "about", "value": "5"}]
    assert refused["fields"] == [{"field": "periods", "code": "PERIOD_REVERSED", "values": about}]
    assert await anonymous.execute(PERIODS) == times
    assert "04:07&quot;" in (await organizer.http.get(page)).text
    await set_periods(organizer, FOURTH, THIRD)  # changes nothing
    await set_periods(organizer)
    logged = (await organizer.execute(LOG))["nodes"]
    text = "3 04:07-04:49, 4 04:53-05:37 TUESDAY/FRIDAY"
    assert [each["edits"] for each in logged[:2]] == [
        [{"field": "periods", "before": text, "after": None}],
        [{"field": "periods", "before": None, "after": text}],
    ]
    assert all(each["by"] for each in logged[:2])


async def test_another_list_changes_no_slot_and_says_which_match_no_more(
    organizer: BookingClient,
) -> None:
    await set_periods(organizer, THIRD, FOURTH)
    # Periods 3 and 4 in Berlin, and an hour earlier in London.
    berlin = {"startTime": "2035-07-03T04:07:00+02:00", "endTime": "2035-07-03T05:37:00+02:00"}
    slot = await organizer.add_slot(title="Chess", timeZone="Europe/Berlin", **berlin)
    await organizer.add_slot(title="Chess in London", timeZone="Europe/London", **berlin)
    off = await organizer.add_slot(title="No chess", timeZone="Europe/Berlin", **berlin)
    await organizer.cancel_slot(off)
    before = await organizer.execute(SLOT, id=slot)
    renamed = [{**THIRD, "name": "JS 3"}, {**FOURTH, "name": "JS 4"}]
    assert await set_periods(organizer, *renamed) == 0
    assert await set_periods(organizer, THIRD) == 1
    assert await set_periods(organizer) == 0
    assert await organizer.execute(SLOT, id=slot) == before
