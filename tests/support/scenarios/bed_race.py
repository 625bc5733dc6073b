"""Two teams who grab overlapping sets of beds in opposite orders, whatever is killed meanwhile."""

import asyncio
import contextlib
import random
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.apps.deployment import Deployment
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json

# Longer than a lock or a transaction of somebody who died keeps others out.
RETRY_TIMEOUT_S = 150.0
USERS_PER_DORM = 4
# No more is asked than is looked at: these are sent more often than any other.
CLAIM_BEDS = """mutation($input: BookSlotsInput!) { bookSlots(input: $input) {
  __typename ... on AllBooked { bookings { id slot { id } } }
} }"""
RELEASE_BED = "mutation($id: ID!) { cancelBooking(bookingId: $id, waitMs: 20000) { __typename } }"


@dataclass(frozen=True)
class BedRace:
    """Four beds, and two teams of two who want three of them each."""

    deployment: Deployment
    apps: list[AppProcess]
    beds: list[str]
    tokens: list[str]
    user_ids: list[str]

    def beds_wanted_by(self, team: int) -> list[str]:
        """The beds a team wants, in its order; two of them the other wants too."""
        return self.beds[:3] if team == 0 else self.beds[:0:-1]

    async def retry_until_answered(self, token: str, document: str, **variables: Any) -> Json:
        """Send a request to whichever process is there, until it is answered with a result."""
        async with asyncio.timeout(RETRY_TIMEOUT_S):
            while True:
                app = random.choice(self.apps)
                with contextlib.suppress(httpx.TransportError):
                    answer = await BookingClient(self.deployment.http, app.url, token).send(
                        document, **variables
                    )
                    if "errors" not in answer:
                        (outcome,) = answer["data"].values()
                        if outcome["__typename"] != "Locked":
                            return dict(outcome)
                await asyncio.sleep(0.02)

    async def claim_beds(self, team: int, key: str) -> dict[str, str] | None:
        """The bookings of a team by their beds, if it got its beds; None if it got none."""
        one, other = self.user_ids[2 * team : 2 * team + 2]
        pairs = zip(self.beds_wanted_by(team), (one, other, one), strict=True)
        claims = [{"slotId": bed, "userId": user_id} for bed, user_id in pairs]
        asked = {"claims": claims, "idempotencyKey": key, "waitMs": 20_000}
        outcome = await self.retry_until_answered(self.tokens[2 * team], CLAIM_BEDS, input=asked)
        if outcome["__typename"] == "ClaimsRefused":
            return None
        return {booking["slot"]["id"]: booking["id"] for booking in outcome["bookings"]}

    async def run_round(self, round_number: int) -> None:
        """Both grab at once: one has all its beds, the other none. Then they are given back."""
        keys = [f"{round_number} of {team}" for team in (0, 1)]
        got = await asyncio.gather(*(self.claim_beds(team, key) for team, key in enumerate(keys)))
        (has,) = [beds for beds in got if beds is not None]
        assert set(has) == set(self.beds_wanted_by(got.index(has)))
        for bed in self.beds:
            assert self.deployment.consistent_booking_ids(bed) == (
                {has[bed][-24:]} if bed in has else set()
            )
        organiser = self.deployment.user_tokens.organizer
        give_back = (
            self.retry_until_answered(organiser, RELEASE_BED, id=id_) for id_ in has.values()
        )
        for outcome in await asyncio.gather(*give_back):
            assert outcome["__typename"] == "BookingCancelled", outcome


async def create_bed_races(
    deployment: Deployment, apps: list[AppProcess], count: int
) -> list[BedRace]:
    """So many dorms with teams of their own."""
    built = []
    for first in range(0, count * USERS_PER_DORM, USERS_PER_DORM):
        people = [
            deployment.client(apps[0], number) for number in range(first, first + USERS_PER_DORM)
        ]
        for one, other in (people[:2], people[2:]):
            await one.create_team_with(other)
        beds = [await deployment.add_slot(apps[0]) for _ in range(4)]
        tokens = [str(person.token) for person in people]
        built.append(
            BedRace(deployment, apps, beds, tokens, [await each.fetch_user_id() for each in people])
        )
    return built


async def run_rounds(races: list[BedRace], rounds: int) -> None:
    """So many rounds in all, the dorms beside each other."""

    async def run_in_sequence(race: BedRace) -> None:
        for number in range(rounds // len(races)):
            await race.run_round(number)

    async with asyncio.TaskGroup() as group:
        for dorm in races:
            group.create_task(run_in_sequence(dorm))
