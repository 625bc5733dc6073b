"""A period that does not end after its beginning is an error with one message, never empty."""

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json

EARLY, LATE = "2031-05-05T09:00:00Z", "2031-05-05T10:00:00Z"
# The names of the beginning and the end, and the query with `%s` in the place of both.
PERIODS = [
    ("startsFrom", "startsBefore", "{ slots(filter: {%s}) { nodes { id } } }"),
    ("meetsFrom", "meetsBefore", "{ slots(filter: {%s}) { nodes { id } } }"),
    ("from", "until", "query($slot: ID!) { slot(id: $slot) { meetings(%s) { startTime } } }"),
    ("from", "until", "{ auditLog(filter: {actions: SLOT_CREATED, %s}) { nodes { at } } }"),
    (
        "from",
        "until",
        "query($campaign: ID!) { campaignStatistics(campaignId: $campaign, timeSeries: {%s}) "
        "{ __typename } }",
    ),
    ("from", "until", "{ freeBusy(resourceIds: [], %s) { isComplete } }"),
]


@pytest.fixture
def organizer(app: AppProcess, http: httpx.AsyncClient) -> BookingClient:
    """Return a client for an organizer."""
    return create_booking_clients(http, 0, app)[1]


async def send(organizer: BookingClient, document: str, begin: str, end: str) -> Json:
    """Send a query with a period, about a new slot or campaign if the query needs one."""
    variables = {}
    if "$slot" in document:
        variables["slot"] = await organizer.add_slot()
    if "$campaign" in document:
        variables["campaign"] = await create_campaign(organizer)
    return await organizer.send(document % f"{begin}, {end}", **variables)


@pytest.mark.parametrize(("begin", "end", "document"), PERIODS)
async def test_a_period_that_ends_when_it_begins_or_earlier_is_an_error(
    organizer: BookingClient, begin: str, end: str, document: str
) -> None:
    for first, last in ((LATE, EARLY), (EARLY, EARLY)):
        found = await send(organizer, document, f'{begin}: "{first}"', f'{end}: "{last}"')
        (error,) = found["errors"]
        assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": end}
        assert error["message"] == f"`{end}` must be later than `{begin}`."


@pytest.mark.parametrize(("begin", "end", "document"), PERIODS)
async def test_a_period_that_ends_later_is_accepted(
    organizer: BookingClient, begin: str, end: str, document: str
) -> None:
    found = await send(organizer, document, f'{begin}: "{EARLY}"', f'{end}: "{LATE}"')
    assert "errors" not in found
