"""How long bookings are impossible after a fault of MongoDB: `python -m bench.failover`.

Three members and two apps run as in `bench.faults`. Users of each app book one slot after another,
with and without an idempotency key, and repeat what fails. Plain PyMongo clients repeat an update
with a majority beside them. The figures are seconds since the beginning of the fault: until another
member was the primary, and the longest time without a success.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from bench.faults.availability import longest_gap_s
from bench.faults.injection.mongo_faults import FAULTS
from bench.faults.topology.deployment import Deployment, DeploymentPlan, open_deployment
from bench.machine import machine_summary
from bench.soak.processes.servers import SoakError
from slotlock.auth.tokens import TokenClaims, TokenSigner, new_token_id
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.repositories import repositories_on
from slotlock.infrastructure.mongo.users.sessions import NewSession

SLOTS, USERS_PER_APP = 400, 4
# After the election, for as long as bookings may take to return.
OBSERVED_S = 12.0
PAUSE_S = 0.1
DRIVERS, DRIVER_TIMEOUT_MS = 3, 1_500
DEFAULT_FAULTS = (
    "mongod primary frozen",
    "mongod primary killed",
    "partition: primary with an app",
    "partition: app without MongoDB",
    "mongod secondary frozen",
)

CREATE = """mutation($input: CreateSlotInput!) { result: createSlot(input: $input) {
  __typename ... on Slot { id } } }"""
BOOK = "mutation($input: BookSlotInput!) { result: bookSlot(input: $input) { __typename } }"


@dataclass(frozen=True, slots=True)
class Measurement:
    """When each kind of caller succeeded, and when each election had a primary."""

    successes: dict[str, list[float]] = field(default_factory=dict)
    elected_at: dict[object, float] = field(default_factory=dict)

    def add(self, caller: str) -> None:
        """Note a success now."""
        self.successes.setdefault(caller, []).append(time.monotonic())


async def send(http: aiohttp.ClientSession, url: str, token: str, body: object) -> str:
    """Send a request, and return the type of its result, with the id of a slot; or nothing."""
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with http.post(f"{url}/graphql", json=body, headers=headers) as response:
            result = (await response.json()).get("data") or {}
    except (aiohttp.ClientError, OSError):
        return ""
    outcome = result.get("result") or {}
    return str(outcome.get("id") or outcome.get("__typename", ""))


async def create_tokens(deployment: Deployment, count: int, role: Role) -> list[str]:
    """Return the tokens of new users."""
    client, database = connect(deployment.members.url)
    repositories, signer = repositories_on(database), TokenSigner([deployment.secret])
    now, tokens = datetime.now(UTC), list[str]()
    for _ in range(count):
        email = f"{new_token_id()}@slotlock.test"
        user = await repositories.users.insert("User", email, role, "no password", now)
        if user is None:
            raise SoakError("a new user has an email address that is taken")
        until = now + timedelta(days=1)
        opened = await repositories.sessions.open(NewSession(user.id, new_token_id(), now, until))
        if opened is None:
            raise SoakError("a new user cannot sign in")
        claims = TokenClaims(user.id, opened[0], new_token_id(), until)
        tokens.append(signer.sign("access", claims, now))
    await client.close()
    return tokens


async def create_slots(deployment: Deployment, http: aiohttp.ClientSession) -> list[str]:
    """Create the slots that the users book, and return their ids."""
    (organizer,) = await create_tokens(deployment, 1, Role.ORGANIZER)
    start = datetime.now(UTC) + timedelta(days=2)
    given = {
        "title": "A slot",
        "startTime": start.isoformat(timespec="seconds"),
        "endTime": (start + timedelta(hours=1)).isoformat(timespec="seconds"),
        "capacity": 1000,
    }
    body = {"query": CREATE, "variables": {"input": given}}
    url = f"http://127.0.0.1:{deployment.apps[0].port}"
    return [await send(http, url, organizer, body) for _ in range(SLOTS)]


async def book_repeatedly(
    http: aiohttp.ClientSession,
    url: str,
    token: str,
    slots: Sequence[str],
    measurement: Measurement,
    caller: str,
    *,
    has_key: bool,
) -> None:
    """Book one slot after another until the task is cancelled."""
    for slot in slots:
        given = {"slotId": slot, **({"idempotencyKey": slot} if has_key else {})}
        body = {"query": BOOK, "variables": {"input": given}}
        while await send(http, url, token, body) not in ("Booked", "AlreadyBooked"):
            await asyncio.sleep(PAUSE_S)
        measurement.add(caller)
        await asyncio.sleep(PAUSE_S)


async def update_repeatedly(url: str, measurement: Measurement) -> None:
    """Update a document with a majority until the task is cancelled."""
    async with AsyncMongoClient[dict[str, object]](
        url, w="majority", timeoutMS=DRIVER_TIMEOUT_MS
    ) as client:
        documents = client["driver"]["documents"]
        while True:
            try:
                await documents.update_one({"_id": 1}, {"$inc": {"count": 1}}, upsert=True)
            except PyMongoError:
                pass
            else:
                measurement.add("driver")
            await asyncio.sleep(PAUSE_S)


async def watch_elections(port: int, measurement: Measurement) -> None:
    """Note when a member first says that it is the primary of an election."""
    async with AsyncMongoClient[dict[str, object]](
        "127.0.0.1", port, directConnection=True, timeoutMS=500
    ) as client:
        while True:
            with suppress(PyMongoError):
                hello = await client.admin.command("hello")
                if hello["isWritablePrimary"]:
                    measurement.elected_at.setdefault(hello["electionId"], time.monotonic())
            await asyncio.sleep(0.05)


async def cancel_and_wait(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel tasks until they have ended.

    PyMongo may raise an error of its own for a cancellation, after which a caller would go on.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=1.0)


async def measure(
    deployment: Deployment, http: aiohttp.ClientSession, slots: list[str], fault: str
) -> dict[str, float]:
    """Return for how long each caller had no success since the fault."""
    measurement = Measurement()
    tokens = await create_tokens(deployment, USERS_PER_APP * len(deployment.apps), Role.MEMBER)
    callers = [update_repeatedly(deployment.members.url, measurement) for _ in range(DRIVERS)]
    callers += [watch_elections(each.port, measurement) for each in deployment.members.all]
    for number, token in enumerate(tokens):
        app = deployment.apps[number % len(deployment.apps)]
        has_key = number >= len(tokens) // 2
        caller = f"{app.name} with key" if has_key else app.name
        order = random.sample(slots, len(slots))
        url = f"http://127.0.0.1:{app.port}"
        callers.append(
            book_repeatedly(http, url, token, order, measurement, caller, has_key=has_key)
        )
    tasks = [asyncio.create_task(caller) for caller in callers]
    while len(measurement.successes) < 2 * len(deployment.apps) + 1:
        await asyncio.sleep(PAUSE_S)
    started_at = time.monotonic()
    seconds = deployment.members.election_timeout_ms / 1000 + OBSERVED_S
    detail = await FAULTS[fault](deployment, random.Random(), seconds)
    ended_at = started_at + seconds
    await cancel_and_wait(tasks)
    await deployment.members.wait_until_healthy()
    print(f"... {fault}: {detail}", file=sys.stderr, flush=True)
    elections = [at - started_at for at in measurement.elected_at.values() if at > started_at]
    return {"election": min(elections, default=0.0)} | {
        caller: longest_gap_s(times, started_at, ended_at)
        for caller, times in sorted(measurement.successes.items())
    }


async def run(faults: Sequence[str], rounds: int, election_timeout_ms: int) -> None:
    """Measure each fault in turn, and print a table."""
    plan = DeploymentPlan("alone", election_timeout_ms, None, "no disk is limited here")
    with tempfile.TemporaryDirectory(prefix="slotlock-failover-") as folder:
        async with (
            open_deployment(plan, Path(folder)) as deployment,
            aiohttp.ClientSession() as http,
        ):
            slots = await create_slots(deployment, http)
            for fault in faults:
                for _ in range(rounds):
                    gaps = await measure(deployment, http, slots, fault)
                    shown = ", ".join(f"{caller} {gap:.1f}" for caller, gap in gaps.items())
                    print(f"{fault}, {election_timeout_ms} ms: {shown}", flush=True)


def main() -> None:
    """Measure the faults that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m bench.failover", description=__doc__)
    parser.add_argument("--election-timeout-ms", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", metavar="TEXT", help="faults with this in the name")
    args = parser.parse_args()
    print(machine_summary())
    faults = [each for each in DEFAULT_FAULTS if args.only in each]
    asyncio.run(run(faults, args.rounds, args.election_timeout_ms))


if __name__ == "__main__":
    main()
