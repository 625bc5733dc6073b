"""People who stand in line, what their tickets say, and whether that is what MongoDB says."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from slotlock.api.embedded import Servers
from slotlock.stores.queue import PARTITIONS
from slotlock.stores.queue_scripts import keys
from tests.support.client import Json, Socket, socket
from tests.support.desk import Person, wait_for
from tests.support.processes import AppProcess, environment
from tests.support.servers import OwnServer, own_server
from tests.support.stage import Scene, assert_whole, lock_key
from tests.support.troupe import forked_app

TICKET = """fragment T on Ticket {
  id status place slotId
  outcome { __typename ... on Refusal { code } ... on Booked { booking { id user { id } } } }
}"""
REQUEST = f"""mutation($input: BookSlotInput!) {{ requestBooking(input: $input) {{
  __typename ... on Refusal {{ code message }} ... on Ticket {{ ...T }}
}} }} {TICKET}"""
LOOK = f"query($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {TICKET}"
WATCH = f"subscription($id: ID!) {{ ticket(id: $id) {{ ...T }} }} {TICKET}"


@dataclass
class Hall:
    """Where people stand in line: a Redis of their own, and an app that serves no queue."""

    valkey: OwnServer
    front: AppProcess

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings of all who serve here."""
        return self.front.environment


@contextmanager
def open_hall(servers: Servers, home: Path, name: str, mongo_url: str = "") -> Iterator[Hall]:
    """A hall with a Redis of its own: who serves a queue serves all who stand in it."""
    with own_server(home / "valkey", "valkey") as valkey:
        settings = environment(servers, name) | {
            "SLOTLOCK_REDIS_URL": valkey.url,
            "SLOTLOCK_QUEUE_WORKER": "off",
        }
        if mongo_url:
            settings["SLOTLOCK_MONGO_URL"] = mongo_url
        with forked_app(settings, home / "front") as front:
            yield Hall(valkey, front)


def name_of(ticket: Json) -> str:
    """What came of a ticket in a word: the kind of its outcome, or where it stands."""
    return str(ticket["outcome"]["__typename"] if ticket["outcome"] else ticket["status"])


@dataclass
class InLine:
    """People in line for one slot in order of arrival, each with the ticket and the key they have.

    `request` is what the others ask for too, but for the slot and the key.
    """

    scene: Scene
    front: AppProcess
    slot_id: str
    people: list[Person]
    tickets: list[str]
    asked_under: list[str]

    async def arrive(self, person: Person, **wish: Any) -> Json:
        """Somebody more in line, at the end."""
        key = secrets.token_hex(8)
        ticket = await ask(person, self.slot_id, idempotencyKey=key, **wish)
        assert ticket["__typename"] == "Ticket", ticket
        self.people.append(person)
        self.tickets.append(ticket["id"])
        self.asked_under.append(key)
        return ticket

    async def ask_again(self, number: int, **wish: Any) -> Json:
        """What one of them is answered who asks the same under the same key."""
        key = self.asked_under[number]
        return await ask(self.people[number], self.slot_id, idempotencyKey=key, **wish)

    async def look(self) -> list[Json]:
        """All the tickets."""
        asked = zip(self.people, self.tickets, strict=True)
        return list(await asyncio.gather(*(person.ask(LOOK, id=id_) for person, id_ in asked)))

    async def told(self) -> list[str]:
        """What the tickets say now, in a word each."""
        return [name_of(ticket) for ticket in await self.look()]

    async def until(self, status: str, *numbers: int) -> None:
        """Wait until the tickets of these, or of all, say so."""

        async def look() -> Json:
            return dict(enumerate(await self.look()))  # type: ignore[arg-type]

        def so(seen: Any) -> bool:
            return all(seen[n]["status"] == status for n in numbers or seen)

        await wait_for(look, so, f"{numbers or 'all'} are {status}")

    async def until_empty(self) -> None:
        """Wait until nobody is in line any more."""

        async def look() -> Json:
            return {"left": len(self.entries)}

        await wait_for(look, lambda seen: not seen["left"], "all have left the line")

    async def assert_served(self, *names: str) -> None:
        """Each gets this outcome, once and for all, and who is told that they are booked is."""
        await self.until("ANSWERED")
        first = await self.look()
        assert [name_of(ticket) for ticket in first] == list(names)
        assert await self.look() == first
        again = [await self.ask_again(number) for number in range(len(self.people))]
        assert [{k: v for k, v in a.items() if k != "__typename"} for a in again] == first
        self.assert_roster(first)

    async def assert_in_order_of_arrival(self) -> None:
        """Who came first was given a place first."""
        told = [t["outcome"]["booking"] for t in await self.look() if name_of(t) == "Booked"]
        roster = [str(booking["id"]) for booking in self.scene.truth(self.slot_id)["bookings"]]
        assert roster == [booking["id"][-24:] for booking in told]

    def assert_roster(self, tickets: Sequence[Json]) -> None:
        """Those whose tickets say that they are booked are on the roster, and nobody else."""
        booked = [t["outcome"]["booking"]["id"][-24:] for t in tickets if name_of(t) == "Booked"]
        assert self.scene.live(self.slot_id) == set(booked)
        assert_whole(self.scene.truth(self.slot_id), len(booked))

    async def cancel(self, number: int) -> None:
        """One of them gives back the place that they have."""
        mine = await self.people[number].mine(self.slot_id)
        given_back = await self.people[number].give_back(mine["myBooking"]["id"])
        assert given_back["__typename"] == "BookingCancelled", given_back

    @property
    def partition(self) -> int:
        """Where they stand, in every process the same."""
        return crc32(self.slot_id[-24:].encode()) % PARTITIONS

    @property
    def entries(self) -> list[dict[Any, Any]]:
        """What is in line there, as Redis has it."""
        found: Any = self.scene.redis.xrange(keys(self.partition)[0])
        return [fields for _, fields in found]

    def put_back(self, entries: Sequence[dict[Any, Any]]) -> None:
        """Deliver requests once more, as a copy of the stream would."""
        for fields in entries:
            self.scene.redis.xadd(keys(self.partition)[0], fields)

    def turn_key(self, part: str) -> str:
        """The key of the turn to serve their partition, or of who waits for it."""
        return f"slotlock:{{queue:{self.partition}}}:{part}"

    def let_locks_run_out(self) -> None:
        """Let what the dead held, of the slot and of the partition, run out now."""
        self.scene.redis.delete(lock_key(self.slot_id), self.turn_key("lock"))


async def ask(person: Person, slot_id: str, **wish: Any) -> Json:
    """What somebody is answered who asks to stand in line."""
    answer: Json = await person.ask(REQUEST, input={"slotId": slot_id, **wish})
    return answer


async def stand(scene: Scene, front: AppProcess, size: int, places: int) -> InLine:
    """So many people who came one after the other, for so few places."""
    slot_id = await scene.slot(front, capacity=places)
    line = InLine(scene, front, slot_id, [], [], [])
    for person in scene.people(front, size):
        await line.arrive(person)
    return line


@asynccontextmanager
async def watching(line: InLine, number: int) -> AsyncIterator[Socket]:
    """A socket on which one of them is told where their ticket stands."""
    async with socket(line.front, line.people[number].token) as opened:
        await opened.subscribe("1", WATCH, id=line.tickets[number])
        yield opened


async def heard(opened: Socket, status: str) -> Json:
    """The first state that is more than QUEUED, which is to be this one."""
    while (ticket := await opened.next())["status"] == "QUEUED":
        pass
    assert ticket["status"] == status, ticket
    told: Json = ticket
    return told


async def heard_the_end(opened: Socket, status: str) -> Json:
    """The final state, which is to be this one, and nothing after it."""
    ticket = await heard(opened, status)
    assert (await opened.receive())["type"] == "complete"
    return ticket
