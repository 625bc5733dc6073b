"""Calendars and the files of organisers are counted by the rates of everything else."""

import httpx
import pytest

from slotlock.api.calendars.endpoint import WEIGHT
from slotlock.domain.people import Role
from slotlock.graphql.rates import FILES
from tests.support.calendars import CREATE, get
from tests.support.limited import PEOPLE, READS, From, somewhere
from tests.support.people import auth_on, sign_in
from tests.support.processes import AppProcess

PUBLISHED = "/calendars/published.ics"
NOWHERE = "/exports/slots/slot_none.csv"

pytestmark = pytest.mark.usefixtures("early")


@pytest.fixture
async def organiser(limited: AppProcess, http: httpx.AsyncClient) -> From:
    async with auth_on(limited.environment["SLOTLOCK_MONGO_URL"]) as auth:
        return somewhere(http, limited, await sign_in(auth, Role.ORGANIZER))


def assert_refused(response: httpx.Response) -> None:
    """It is told when to ask again."""
    assert response.status_code == 429
    told = response.json()
    assert told["code"] == "RATE_LIMITED"
    assert 0 < told["retryAfterMs"] <= 120_000
    assert 0 <= int(response.headers["retry-after"]) * 1000 - told["retryAfterMs"] < 1000


async def test_an_address_reads_so_many_calendars_a_minute_private_ones_too(
    nobody: From, member: From
) -> None:
    private = (await member.post(CREATE)).json()["data"]["createCalendarAddress"]["url"]
    most = PEOPLE * READS // WEIGHT
    paths = [private, PUBLISHED, "/calendars/private/none.ics"] * most
    answers = [(await get(nobody, path)).status_code for path in paths[:most]]
    assert answers == [200, 200, 404, 200][:most]
    for path in paths[:3]:
        assert_refused(await get(nobody, path))
    assert await nobody.let_in(1) == 0  # they are reads


async def test_who_signed_in_reads_so_many_as_a_person(member: From) -> None:
    answers = [(await get(member, PUBLISHED)).status_code for _ in range(READS // WEIGHT + 1)]
    assert answers == [200] * (READS // WEIGHT) + [429]


async def test_an_organiser_sends_and_fetches_so_many_files_a_minute(
    organiser: From, nobody: From
) -> None:
    answers = [(await get(organiser, NOWHERE)).status_code for _ in range(FILES)]
    assert answers == [404] * FILES
    assert_refused(await get(organiser, NOWHERE))
    for path in ("/people/import", "/people/invitations"):
        url = organiser.url + path
        assert_refused(await organiser.http.post(url, headers=organiser.headers))
    # Neither other things of theirs, nor what others at their address do.
    assert await organiser.let_in(1) == 1
    nobody.address = organiser.address
    assert (await get(nobody, NOWHERE)).status_code == 401


async def test_who_is_nobody_uses_up_no_files_of_their_neighbours(
    organiser: From, nobody: From
) -> None:
    nobody.address = organiser.address
    answers = {(await get(nobody, NOWHERE)).status_code for _ in range(PEOPLE * FILES + 1)}
    assert answers == {401}
    assert (await get(organiser, NOWHERE)).status_code == 404


async def test_without_rates_nothing_is_counted(app: AppProcess, http: httpx.AsyncClient) -> None:
    async with auth_on(app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        organiser = From(http, app.url, await sign_in(auth, Role.ORGANIZER))
    answers = {(await get(organiser, NOWHERE)).status_code for _ in range(FILES + 1)}
    assert answers == {404}
