"""Defects of five published designs with several places: each occurs only without its guard."""

import asyncio
import contextlib
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, kill_at_pause, lock_key, open_deployment
from tests.support.apps.processes import AppProcess, Pair, app_environment
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json

LONG_RUN_ROUNDS = int(os.environ.get("TEST_CAMPAIGN", "0"))
RACES, USERS_PER_RACE = 5, 4
MEMBER_COUNT = RACES * USERS_PER_RACE
# Longer than the lock or the transaction of a killed process blocks others.
RETRY_TIMEOUT_S = 150.0
# These documents select only the fields that are checked, because they are sent most often.
CLAIM_BEDS = """mutation($input: BookSlotsInput!) { bookSlots(input: $input) {
  __typename ... on AllBooked { bookings { id slot { id } } }
} }"""
RELEASE_BED = "mutation($id: ID!) { cancelBooking(bookingId: $id, waitMs: 20000) { __typename } }"
MAX_KILL_INTERVAL_S = 4.0


@dataclass(frozen=True)
class BedRace:
    """Four beds, and two teams of two users that each want three of them."""

    deployment: Deployment
    apps: list[AppProcess]
    beds: list[str]
    tokens: list[str]
    user_ids: list[str]

    def beds_wanted_by(self, team: int) -> list[str]:
        """Return the beds that a team claims, in its order; both teams want two of them."""
        return self.beds[:3] if team == 0 else self.beds[:0:-1]

    async def retry_until_answered(self, token: str, document: str, **variables: object) -> Json:
        """Send a request to random processes until one returns a result other than Locked."""
        async with asyncio.timeout(RETRY_TIMEOUT_S):
            while True:
                app = random.choice(self.apps)
                client = BookingClient(self.deployment.http, app.url, token)
                with contextlib.suppress(httpx.TransportError):
                    response = await client.send(document, **variables)
                    if "errors" not in response:
                        (outcome,) = response["data"].values()
                        if outcome["__typename"] != "Locked":
                            return dict(outcome)
                await asyncio.sleep(0.02)

    async def claim_beds(self, team: int, key: str) -> dict[str, str] | None:
        """Return the bookings of a team by bed if it got all its beds, else None."""
        first, second = self.user_ids[2 * team : 2 * team + 2]
        pairs = zip(self.beds_wanted_by(team), (first, second, first), strict=True)
        claims = [{"slotId": bed, "userId": user_id} for bed, user_id in pairs]
        request = {"claims": claims, "idempotencyKey": key, "waitMs": 20_000}
        outcome = await self.retry_until_answered(self.tokens[2 * team], CLAIM_BEDS, input=request)
        if outcome["__typename"] == "ClaimsRefused":
            return None
        return {booking["slot"]["id"]: booking["id"] for booking in outcome["bookings"]}

    async def run_round(self, round_number: int) -> None:
        """Let both teams claim at once, check that one has all its beds, and cancel them."""
        keys = [f"{round_number} of {team}" for team in (0, 1)]
        results = await asyncio.gather(
            *(self.claim_beds(team, key) for team, key in enumerate(keys))
        )
        (bookings,) = [beds for beds in results if beds is not None]
        assert set(bookings) == set(self.beds_wanted_by(results.index(bookings)))
        for bed in self.beds:
            expected = {bookings[bed][-24:]} if bed in bookings else set()
            assert self.deployment.consistent_booking_ids(bed) == expected
        organizer = self.deployment.user_tokens.organizer
        releases = (
            self.retry_until_answered(organizer, RELEASE_BED, id=booking_id)
            for booking_id in bookings.values()
        )
        for outcome in await asyncio.gather(*releases):
            assert outcome["__typename"] == "BookingCancelled", outcome


async def create_bed_races(
    deployment: Deployment, apps: list[AppProcess], count: int
) -> list[BedRace]:
    """Create independent races, each with its own beds and teams."""
    races = []
    for first in range(0, count * USERS_PER_RACE, USERS_PER_RACE):
        clients = [
            deployment.client(apps[0], number) for number in range(first, first + USERS_PER_RACE)
        ]
        for member, teammate in (clients[:2], clients[2:]):
            await member.create_team_with(teammate)
        beds = [await deployment.add_slot(apps[0]) for _ in range(4)]
        tokens = [str(client.token) for client in clients]
        user_ids = [await client.fetch_user_id() for client in clients]
        races.append(BedRace(deployment, apps, beds, tokens, user_ids))
    return races


async def run_rounds(races: list[BedRace], rounds: int) -> None:
    """Run this many rounds in total, with all races in parallel."""

    async def run_in_sequence(race: BedRace) -> None:
        for number in range(rounds // len(races)):
            await race.run_round(number)

    async with asyncio.TaskGroup() as group:
        for race in races:
            group.create_task(run_in_sequence(race))


def claims(slot_ids: Sequence[str], user_ids: Sequence[str] = ()) -> list[Json]:
    """Return claims for a place in each slot, for these users or for the caller."""
    if not user_ids:
        return [{"slotId": slot_id} for slot_id in slot_ids]
    pairs = zip(slot_ids, user_ids, strict=True)
    return [{"slotId": slot_id, "userId": user_id} for slot_id, user_id in pairs]


@pytest.mark.parametrize(
    ("without", "point", "booking_counts"),
    [
        ("", "transaction", [0, 0]),
        ("", "release", [1, 1]),
        ("all-or-none", "between-steps", [1, 0]),
    ],
)
async def test_a_process_killed_while_it_books_two_places_books_none_or_both(
    deployment: Deployment, without: str, point: str, booking_counts: list[int]
) -> None:
    app, pause_point = deployment.paused_app(point, without)
    slot_ids = [await deployment.add_slot(app) for _ in range(2)]
    request = deployment.client(app, 0).book_all(*claims(slot_ids))
    await kill_at_pause(pause_point, app, request)
    assert [len(deployment.booking_ids(slot_id)) for slot_id in slot_ids] == booking_counts


@pytest.mark.parametrize(("without", "booking_counts"), [("", [0, 1]), ("all-or-none", [1, 1])])
async def test_if_one_of_two_places_is_taken_the_other_is_not_booked(
    deployment: Deployment, without: str, booking_counts: list[int]
) -> None:
    app, pause_point = deployment.paused_app("commit", without)
    slot_ids = sorted([await deployment.add_slot(app) for _ in range(2)])
    adas = asyncio.create_task(deployment.client(app, 0).book_all(*claims(slot_ids)))
    await asyncio.to_thread(pause_point.wait_until_reached)
    deployment.redis.delete(*map(lock_key, slot_ids))
    assert (await deployment.client(app, 1).book_slot(slot_ids[1]))["__typename"] == "Booked"
    pause_point.resume()
    outcome = (await adas)["__typename"]
    assert outcome != "AllBooked" if without else outcome == "ClaimsRefused"
    assert [len(deployment.booking_ids(slot_id)) for slot_id in slot_ids] == booking_counts


@pytest.mark.parametrize(
    ("without", "outcomes", "booked_count"),
    [("", {"AllBooked", "ClaimsRefused"}, 2), ("user-versions", {"AllBooked"}, 4)],
)
async def test_two_members_who_book_for_their_team_at_once_get_one_bed_each(
    deployment: Deployment, without: str, outcomes: set[str], booked_count: int
) -> None:
    slow_app, pause_point = deployment.paused_app("commit", without)
    app = deployment.app(without) if without else slow_app
    choice_group = f"beds of {pause_point.key}"
    beds = [await deployment.add_slot(app, choiceGroup=choice_group) for _ in range(4)]
    ada, ben = deployment.clients(app, 2)
    await ada.create_team_with(ben)
    user_ids = [await ada.fetch_user_id(), await ben.fetch_user_id()]
    slow_ada = deployment.client(slow_app, 0)
    adas = asyncio.create_task(slow_ada.book_all(*claims(beds[:2], user_ids)))
    await asyncio.to_thread(pause_point.wait_until_reached)
    bens = await ben.book_all(*claims(beds[2:], user_ids))
    pause_point.resume()
    assert {(await adas)["__typename"], bens["__typename"]} == outcomes
    assert sum(len(deployment.booking_ids(bed)) for bed in beds) == booked_count


async def test_two_teams_that_claim_overlapping_beds_at_once_get_all_or_none(
    deployment: Deployment, two_apps: Pair
) -> None:
    await run_rounds(await create_bed_races(deployment, list(two_apps), RACES), rounds=40)


@pytest.mark.skipif(not LONG_RUN_ROUNDS, reason="TEST_CAMPAIGN is the number of rounds")
@pytest.mark.timeout(7200)
async def test_two_teams_get_all_beds_or_none_while_processes_are_killed(
    servers: EmbeddedServers, log_dir: Path
) -> None:
    async with open_deployment(
        app_environment(servers, "campaign"), log_dir, MEMBER_COUNT
    ) as deployment:
        apps = [deployment.app(), deployment.app()]
        killing = asyncio.create_task(kill_and_restart(deployment, apps))
        await run_rounds(await create_bed_races(deployment, apps, RACES), LONG_RUN_ROUNDS)
        killing.cancel()


async def kill_and_restart(deployment: Deployment, apps: list[AppProcess]) -> None:
    """Kill random processes and replace them until cancelled."""
    while True:
        await asyncio.sleep(random.uniform(0.5, MAX_KILL_INTERVAL_S))
        index = random.randrange(len(apps))
        apps[index].kill()
        apps[index] = await asyncio.to_thread(deployment.app)
