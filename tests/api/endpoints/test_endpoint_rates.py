"""Calendars and the files of organisers are counted by the rates of everything else."""

import httpx
import pytest

from slotlock.api.calendars.endpoint import CALENDAR_READ_COST
from slotlock.domain.users.user import Role
from slotlock.graphql.limits.rates import MAX_FILES_PER_MINUTE
from tests.support.apps.processes import AppProcess
from tests.support.apps.rate_limited import (
    READS_PER_MINUTE,
    USERS_PER_ADDRESS,
    AddressedClient,
    client_at_new_address,
)
from tests.support.clients.calendars import CREATE_CALENDAR, get_path
from tests.support.stores.users import auth_for_database, sign_in_new_user

PUBLISHED = "/calendars/published.ics"
NOWHERE = "/exports/slots/slot_none.csv"

pytestmark = pytest.mark.usefixtures("early_in_minute")


@pytest.fixture
async def organizer(rate_limited: AppProcess, http: httpx.AsyncClient) -> AddressedClient:
    async with auth_for_database(rate_limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        return client_at_new_address(
            http, rate_limited, await sign_in_new_user(auth, Role.ORGANIZER)
        )


def assert_refused(response: httpx.Response) -> None:
    """It is told when to ask again."""
    assert response.status_code == 429
    told = response.json()
    assert told["code"] == "RATE_LIMITED"
    assert 0 < told["retryAfterMs"] <= 120_000
    assert 0 <= int(response.headers["retry-after"]) * 1000 - told["retryAfterMs"] < 1000


async def test_an_address_reads_so_many_calendars_a_minute_private_ones_too(
    anonymous: AddressedClient, member: AddressedClient
) -> None:
    private = (await member.post(CREATE_CALENDAR)).json()["data"]["createCalendarFeed"]["url"]
    most = USERS_PER_ADDRESS * READS_PER_MINUTE // CALENDAR_READ_COST
    paths = [private, PUBLISHED, "/calendars/private/none.ics"] * most
    answers = [(await get_path(anonymous, path)).status_code for path in paths[:most]]
    assert answers == [200, 200, 404, 200][:most]
    for path in paths[:3]:
        assert_refused(await get_path(anonymous, path))
    assert await anonymous.count_accepted(1) == 0  # they are reads


async def test_who_signed_in_reads_so_many_as_a_person(member: AddressedClient) -> None:
    answers = [
        (await get_path(member, PUBLISHED)).status_code
        for _ in range(READS_PER_MINUTE // CALENDAR_READ_COST + 1)
    ]
    assert answers == [200] * (READS_PER_MINUTE // CALENDAR_READ_COST) + [429]


async def test_an_organiser_sends_and_fetches_so_many_files_a_minute(
    organizer: AddressedClient, anonymous: AddressedClient
) -> None:
    answers = [
        (await get_path(organizer, NOWHERE)).status_code for _ in range(MAX_FILES_PER_MINUTE)
    ]
    assert answers == [404] * MAX_FILES_PER_MINUTE
    assert_refused(await get_path(organizer, NOWHERE))
    for path in ("/users/import", "/users/invitations"):
        url = organizer.url + path
        assert_refused(await organizer.http.post(url, headers=organizer.headers))
    # Neither other things of theirs, nor what others at their address do.
    assert await organizer.count_accepted(1) == 1
    anonymous.address = organizer.address
    assert (await get_path(anonymous, NOWHERE)).status_code == 401


async def test_who_is_nobody_uses_up_no_files_of_their_neighbours(
    organizer: AddressedClient, anonymous: AddressedClient
) -> None:
    anonymous.address = organizer.address
    answers = {
        (await get_path(anonymous, NOWHERE)).status_code
        for _ in range(USERS_PER_ADDRESS * MAX_FILES_PER_MINUTE + 1)
    }
    assert answers == {401}
    assert (await get_path(organizer, NOWHERE)).status_code == 404


async def test_without_rates_nothing_is_counted(app: AppProcess, http: httpx.AsyncClient) -> None:
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        organizer = AddressedClient(http, app.url, await sign_in_new_user(auth, Role.ORGANIZER))
    answers = {
        (await get_path(organizer, NOWHERE)).status_code for _ in range(MAX_FILES_PER_MINUTE + 1)
    }
    assert answers == {404}
