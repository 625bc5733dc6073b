"""Two teams that claim overlapping sets of beds in opposite orders, while processes may die."""

import asyncio
import contextlib
import random
from dataclasses import dataclass

import httpx

from tests.support.apps.deployment import Deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json

# Longer than the lock or the transaction of a killed process blocks others.
RETRY_TIMEOUT_S = 150.0
USERS_PER_RACE = 4
# These documents select only the fields that are checked, because they are sent most often.
CLAIM_BEDS = """mutation($input: BookSlotsInput!) { bookSlots(input: $input) {
  __typename ... on AllBooked { bookings { id slot { id } } }
} }"""
RELEASE_BED = "mutation($id: ID!) { cancelBooking(bookingId: $id, waitMs: 20000) { __typename } }"


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
