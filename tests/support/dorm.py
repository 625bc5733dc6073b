"""Two teams who grab overlapping sets of beds in opposite orders, whatever is killed meanwhile."""

import asyncio
import contextlib
import random
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.client import Json
from tests.support.desk import Person
from tests.support.processes import AppProcess
from tests.support.stage import Scene

# Longer than a lock or a transaction of somebody who died keeps others out.
PATIENCE_S = 150.0
MEMBERS = 4
# No more is asked than is looked at: these are sent more often than any other.
GRAB = """mutation($input: BookSlotsInput!) { bookSlots(input: $input) {
  __typename ... on AllBooked { bookings { id slot { id } } }
} }"""
GIVE_BACK = "mutation($id: ID!) { cancelBooking(bookingId: $id, waitMs: 20000) { __typename } }"


@dataclass(frozen=True)
class Dorm:
    """Four beds, and two teams of two who want three of them each."""

    scene: Scene
    apps: list[AppProcess]
    beds: list[str]
    tokens: list[str]
    ids: list[str]

    def wanted(self, team: int) -> list[str]:
        """The beds a team wants, in its order; two of them the other wants too."""
        return self.beds[:3] if team == 0 else self.beds[:0:-1]

    async def insist(self, token: str, query: str, **given: Any) -> Json:
        """Send a request to whichever process is there, until it is answered with a result."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                app = random.choice(self.apps)
                with contextlib.suppress(httpx.TransportError):
                    answer = await Person(self.scene.http, app.url, token).send(query, **given)
                    if "errors" not in answer:
                        (outcome,) = answer["data"].values()
                        if outcome["__typename"] != "Locked":
                            return dict(outcome)
                await asyncio.sleep(0.02)

    async def grab(self, team: int, key: str) -> dict[str, str] | None:
        """The bookings of a team by their beds, if it got its beds; None if it got none."""
        one, other = self.ids[2 * team : 2 * team + 2]
        pairs = zip(self.wanted(team), (one, other, one), strict=True)
        claims = [{"slotId": bed, "userId": user_id} for bed, user_id in pairs]
        asked = {"claims": claims, "idempotencyKey": key, "waitMs": 20_000}
        outcome = await self.insist(self.tokens[2 * team], GRAB, input=asked)
        if outcome["__typename"] == "ClaimsRefused":
            return None
        return {booking["slot"]["id"]: booking["id"] for booking in outcome["bookings"]}

    async def play(self, number: int) -> None:
        """Both grab at once: one has all its beds, the other none. Then they are given back."""
        keys = [f"{number} of {team}" for team in (0, 1)]
        got = await asyncio.gather(*(self.grab(team, key) for team, key in enumerate(keys)))
        (has,) = [beds for beds in got if beds is not None]
        assert set(has) == set(self.wanted(got.index(has)))
        for bed in self.beds:
            assert self.scene.live(bed) == ({has[bed][-24:]} if bed in has else set())
        organiser = self.scene.crowd.organiser
        give_back = (self.insist(organiser, GIVE_BACK, id=id_) for id_ in has.values())
        for outcome in await asyncio.gather(*give_back):
            assert outcome["__typename"] == "BookingCancelled", outcome


async def dorms(scene: Scene, apps: list[AppProcess], size: int) -> list[Dorm]:
    """So many dorms with teams of their own."""
    built = []
    for first in range(0, size * MEMBERS, MEMBERS):
        people = [scene.person(apps[0], number) for number in range(first, first + MEMBERS)]
        for one, other in (people[:2], people[2:]):
            await one.team_up(other)
        beds = [await scene.slot(apps[0]) for _ in range(4)]
        tokens = [str(person.token) for person in people]
        built.append(Dorm(scene, apps, beds, tokens, [await each.id() for each in people]))
    return built


async def play(dorms: list[Dorm], rounds: int) -> None:
    """So many rounds in all, the dorms beside each other."""

    async def one_after_the_other(dorm: Dorm) -> None:
        for number in range(rounds // len(dorms)):
            await dorm.play(number)

    async with asyncio.TaskGroup() as group:
        for dorm in dorms:
            group.create_task(one_after_the_other(dorm))
