"""Calendars and the files of organizers count toward the rate limits."""

import httpx
import pytest

from slotlock.api.calendars.calendar_endpoint import CALENDAR_READ_COST
from slotlock.api.exports.draw_record_endpoint import RECORD_READ_COST
from slotlock.domain.users.user import Role
from slotlock.graphql.limits.operation_rates import MAX_FILES_PER_MINUTE, MAX_FRAMES_PER_MINUTE
from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    READS_PER_MINUTE,
    USERS_PER_ADDRESS,
    WRITES_PER_MINUTE,
    AddressedClient,
    client_at_new_address,
)
from tests.support.clients.calendars import CREATE_CALENDAR, get_path
from tests.support.stores.users import auth_for_database, sign_in_new_user

PUBLISHED_PATH = "/calendars/published.ics"
UNKNOWN_EXPORT_PATH = "/exports/slots/slot_none.csv"


@pytest.fixture
def rate_limited(limited_by_minute: AppProcess, early_in_minute: None) -> AppProcess:
    """Let clients use an app whose windows end, because each 429 says when."""
    return limited_by_minute


@pytest.fixture
async def organizer(rate_limited: AppProcess, http: httpx.AsyncClient) -> AddressedClient:
    async with auth_for_database(rate_limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        token = await sign_in_new_user(auth, Role.ORGANIZER)
    return client_at_new_address(http, rate_limited, token)


async def get_status(client: AddressedClient, path: str) -> int:
    """Return the status of a GET."""
    return (await get_path(client, path)).status_code


def assert_rate_limited(response: httpx.Response) -> None:
    """Check a 429 that says when to retry."""
    assert response.status_code == 429
    body = response.json()
    assert body["code"] == "RATE_LIMITED"
    assert 0 < body["retryAfterMs"] <= 120_000
    assert 0 <= int(response.headers["retry-after"]) * 1000 - body["retryAfterMs"] < 1000


async def test_an_address_may_read_a_limited_number_of_calendars_including_private_ones(
    stranger: AddressedClient, caller: AddressedClient
) -> None:
    private_path = (await caller.post(CREATE_CALENDAR)).json()["data"]["createCalendarFeed"]["url"]
    limit = USERS_PER_ADDRESS * READS_PER_MINUTE // CALENDAR_READ_COST
    paths = [private_path, PUBLISHED_PATH, "/calendars/private/none.ics"] * limit
    statuses = [await get_status(stranger, path) for path in paths[:limit]]
    assert statuses == [200, 200, 404, 200][:limit]
    for path in paths[:3]:
        assert_rate_limited(await get_path(stranger, path))
    assert await stranger.count_accepted(1) == 0  # calendars and queries share one limit


async def test_an_address_may_unsubscribe_a_limited_number_of_times(
    stranger: AddressedClient,
) -> None:
    limit = USERS_PER_ADDRESS * WRITES_PER_MINUTE
    statuses = [await get_status(stranger, "/unsubscribe/none") for _ in range(limit + 1)]
    assert statuses == [404] * limit + [429]


@pytest.mark.parametrize(
    ("path", "cost", "status"),
    [(PUBLISHED_PATH, CALENDAR_READ_COST, 200), ("/draws/none/record", RECORD_READ_COST, 404)],
)
async def test_a_user_may_read_a_limited_number_of_calendars_and_records(
    caller: AddressedClient, path: str, cost: int, status: int
) -> None:
    limit = READS_PER_MINUTE // cost
    statuses = [await get_status(caller, path) for _ in range(limit + 1)]
    assert statuses == [status] * limit + [429]


async def test_an_organizer_may_send_and_fetch_a_limited_number_of_files(
    organizer: AddressedClient, stranger: AddressedClient
) -> None:
    statuses = [
        await get_status(organizer, UNKNOWN_EXPORT_PATH) for _ in range(MAX_FILES_PER_MINUTE)
    ]
    assert statuses == [404] * MAX_FILES_PER_MINUTE
    assert_rate_limited(await get_path(organizer, UNKNOWN_EXPORT_PATH))
    for path in ("/users/import", "/users/invitations"):
        url = organizer.url + path
        assert_rate_limited(await organizer.http.post(url, headers=organizer.headers))
    # Files use up neither the organizer's other limits nor those of others at the address.
    assert await organizer.count_accepted(1) == 1
    stranger.address = organizer.address
    assert await get_status(stranger, UNKNOWN_EXPORT_PATH) == 401


async def test_a_camera_may_send_a_limited_number_of_frames(organizer: AddressedClient) -> None:
    async def send() -> httpx.Response:
        url = f"{organizer.url}/check-in/frames"
        return await organizer.http.post(url, headers=organizer.headers)

    statuses = [(await send()).status_code for _ in range(MAX_FRAMES_PER_MINUTE)]
    assert statuses == [415] * MAX_FRAMES_PER_MINUTE
    assert_rate_limited(await send())
    assert await get_status(organizer, UNKNOWN_EXPORT_PATH) == 404


async def test_anonymous_requests_use_up_no_files_of_their_address(
    organizer: AddressedClient, stranger: AddressedClient
) -> None:
    stranger.address = organizer.address
    statuses = {
        await get_status(stranger, UNKNOWN_EXPORT_PATH)
        for _ in range(USERS_PER_ADDRESS * MAX_FILES_PER_MINUTE + 1)
    }
    assert statuses == {401}
    assert await get_status(organizer, UNKNOWN_EXPORT_PATH) == 404


async def test_without_limits_nothing_is_counted(app: AppProcess, http: httpx.AsyncClient) -> None:
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        organizer = AddressedClient(http, app.url, await sign_in_new_user(auth, Role.ORGANIZER))
    statuses = {
        await get_status(organizer, UNKNOWN_EXPORT_PATH) for _ in range(MAX_FILES_PER_MINUTE + 1)
    }
    assert statuses == {404}
