"""`python -m bench.sign_ins`: how long a school takes to sign in from one address.

The users arrive within 8 s at one server process, each with the right password. A user who is
refused tries again after `retryAfterMs`. In some rounds an attacker sends passwords of unknown
accounts meanwhile, from the address of the school or from another one. The table says after how
many seconds half of the users and all of them are in, and how many were refused.
"""

import argparse
import asyncio
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

import aiohttp
import orjson

from bench.comparison.servers import BenchmarkServers, running_servers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import running
from bench.machine import machine_summary
from slotlock.auth.login_throttle import LoginThrottle
from slotlock.auth.passwords import PasswordHasher
from slotlock.domain.users.user import Role
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.known_addresses import KnownAddresses
from slotlock.infrastructure.redis.rate_limits import RateLimiter

PASSWORD = "correct horse battery"
ARRIVAL_S, ATTACKS_PER_S, MAX_ATTACKS = 8.0, 100, 2_000
# What the client guides recommend for requests with a password.
TIMEOUT = aiohttp.ClientTimeout(total=45)
BATCH_SIZE = 50
LOGIN = """mutation($input: LoginInput!) {
  login(input: $input) { __typename ... on ServerBusy { retryAfterMs } } }"""
ELSEWHERE = "203.0.113.1"
ROUNDS = (
    ("known", "nobody"),
    ("known", "same address"),
    ("known", "other address"),
    ("new", "same address"),
    ("new", "other address"),
)


def main() -> int:
    """Return 0 if all users of all rounds signed in, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.sign_ins", description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[400, 1000, 3000], metavar="N")
    args = parser.parse_args()
    print(machine_summary())
    print("users are        attacker         users  half in  all in  refused once, more  outcomes")
    with running_servers() as servers:
        return asyncio.run(_measure(servers, args.users))


async def _measure(servers: BenchmarkServers, sizes: Sequence[int]) -> int:
    options = {"SLOTLOCK_TRUSTED_PROXIES": "127.0.0.1"}
    command = slotlock_target.command(servers.embedded, 1, options)
    emails = [f"user{number}@school.test" for number in range(max(sizes))]
    addresses, failed = count(1), False
    await _insert_users(command.environment, emails)
    for known, attacker in ROUNDS:
        for size in sizes:
            # A new one, at which nothing was counted yet.
            school = f"198.51.100.{next(addresses)}"
            if known == "known":
                await _sign_in_before(command.environment, emails[:size], school)
            with running("serve", command, servers.folder) as app:
                rush = Rush(app.url, school)
                source = {"same address": school, "other address": ELSEWHERE}.get(attacker)
                await rush.run(emails[:size], source)
            times = sorted(rush.signed_in_s)
            failed |= len(times) < size
            half_s, all_s = ((times + [math.nan] * size)[n - 1] for n in (size // 2, size))
            once = sum(tries == 1 for tries in rush.refusals.values())
            more = len(rush.refusals) - once
            line = f"{known:16} {attacker:16} {size:5} {half_s:7.1f} {all_s:7.1f} {once:8} {more:8}"
            print(line, dict(rush.outcomes), flush=True)
    return int(failed)


@dataclass
class Rush:
    """The users of one round, and what became of them."""

    url: str
    school: str
    # When each user was in, in seconds since the first one came.
    signed_in_s: list[float] = field(default_factory=list)
    # How often each user was refused.
    refusals: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)

    async def run(self, emails: Sequence[str], attacker_address: str | None) -> None:
        """Let all users sign in."""
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=TIMEOUT) as http:
            attack = asyncio.create_task(self._attack(http, attacker_address))
            started_at = time.monotonic()
            users = []
            for number, email in enumerate(emails):
                due_s = started_at + number * ARRIVAL_S / len(emails) - time.monotonic()
                await asyncio.sleep(max(due_s, 0))
                users.append(asyncio.create_task(self._sign_in(http, email, started_at)))
            await asyncio.gather(*users)
            attack.cancel()

    async def _sign_in(self, http: aiohttp.ClientSession, email: str, started_at: float) -> None:
        while True:
            result = await self._login(http, email, self.school)
            self.outcomes[result["__typename"]] += 1
            if result["__typename"] == "Session":
                self.signed_in_s.append(time.monotonic() - started_at)
            if result["__typename"] != "ServerBusy":
                return
            self.refusals[email] += 1
            await asyncio.sleep(result["retryAfterMs"] / 1000)

    async def _attack(self, http: aiohttp.ClientSession, address: str | None) -> None:
        attempts: set[asyncio.Task[Mapping[str, object]]] = set()
        for number in count():
            if address is not None and len(attempts) < MAX_ATTACKS:
                email = f"unknown{number}@school.test"
                attempt = asyncio.create_task(self._login(http, email, address))
                attempts.add(attempt)
                attempt.add_done_callback(attempts.discard)
            await asyncio.sleep(1 / ATTACKS_PER_S)

    async def _login(self, http: aiohttp.ClientSession, email: str, address: str) -> dict[str, Any]:
        variables = {"input": {"email": email, "password": PASSWORD}}
        headers = {"content-type": "application/json", "x-forwarded-for": address}
        body = orjson.dumps({"query": LOGIN, "variables": variables})
        try:
            async with http.post(f"{self.url}/graphql", data=body, headers=headers) as response:
                answer = orjson.loads(await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            return {"__typename": type(error).__name__}
        if errors := answer.get("errors"):
            return {"__typename": errors[0]["extensions"]["code"]}
        login: dict[str, Any] = answer["data"]["login"]
        return login


async def _insert_users(environment: Mapping[str, str], emails: Sequence[str]) -> None:
    client, database = connect(environment["SLOTLOCK_MONGO_URL"])
    hasher, users = PasswordHasher(), Repositories(database).users
    password_hash = await hasher.hash(PASSWORD)
    for batch in chunked(emails, BATCH_SIZE):
        await asyncio.gather(
            *(
                users.insert("Somebody", email, Role.MEMBER, password_hash, datetime.now(UTC))
                for email in batch
            )
        )
    hasher.close()
    await client.close()


async def _sign_in_before(
    environment: Mapping[str, str], emails: Sequence[str], address: str
) -> None:
    """Let the address be known to the accounts."""
    pipeline = AutoPipeline(redis_client(environment["SLOTLOCK_REDIS_URL"]))
    key = environment["SLOTLOCK_SECRET_KEY"].encode()
    throttle = LoginThrottle(RateLimiter(pipeline), KnownAddresses(pipeline), key)
    for batch in chunked(emails, BATCH_SIZE):
        attempts = (throttle.start_attempt(email, address) for email in batch)
        for attempt in await asyncio.gather(*attempts):
            throttle.record_success(attempt)
    await pipeline.close()


if __name__ == "__main__":
    raise SystemExit(main())
