"""A MongoDB replica set of three members that reach each other through the proxy."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from bench.faults.clock import clock_offset_s
from bench.faults.topology.disks import mount_disk, unmount_disk
from bench.faults.topology.links import Links
from bench.faults.topology.servers import CampaignError, KillableServer
from slotlock.devserver.binaries import MONGOD

MEMBER_NAMES = ("mongo0", "mongo1", "mongo2")
DATABASE = "faults"
OPLOG_MIB = 400
DISK_MIB = 1500
ENDED_SHARE = 0.7
PRIMARY_TIMEOUT_S = 90.0
CATCH_UP_TIMEOUT_S = 120.0

Document = dict[str, Any]


def direct_client(port: int, timeout_ms: int = 2_000) -> "MongoClient[Document]":
    """Return a client of one member, which no link disturbs."""
    return MongoClient(
        "127.0.0.1",
        port,
        directConnection=True,
        serverSelectionTimeoutMS=timeout_ms,
        connectTimeoutMS=timeout_ms,
        socketTimeoutMS=timeout_ms,
    )


def does_mongod_respond(port: int, pid: int) -> bool:
    """Return whether the process with this pid responds on the port."""
    with closing(direct_client(port)) as client, suppress(PyMongoError):
        return bool(client.admin.command("serverStatus")["pid"] == pid)
    return False


@dataclass(frozen=True, slots=True)
class Election:
    """When a primary was elected, and when a majority could confirm its writes.

    Times are seconds of the monotonic clock.
    """

    elected_at: float
    majority_at: float


def _find_election(port: int) -> Election | None:
    with closing(direct_client(port)) as client, suppress(PyMongoError):
        metrics = client.admin.command("replSetGetStatus").get("electionCandidateMetrics", {})
        if "wMajorityWriteAvailabilityDate" in metrics:
            dates = (metrics["lastElectionDate"], metrics["wMajorityWriteAvailabilityDate"])
            return Election(*map(_to_monotonic, dates))
    return None


def _to_monotonic(date: datetime) -> float:
    # The members have the clock of this host.
    return date.replace(tzinfo=UTC).timestamp() - clock_offset_s()


def _ended_holds(bookings: Sequence[Document], now: datetime) -> Document:
    """Return the fields that end the holds among these bookings, two for each."""
    changes: Document = {}
    for index, booking in enumerate(bookings):
        if "heldUntil" in booking and booking["heldUntil"] > now:
            last = len(booking["history"]) - 1
            changes[f"bookings.{index}.heldUntil"] = now
            changes[f"bookings.{index}.history.{last}.heldUntil"] = now
    return changes


# With the settings below, as docs/guides/operators.md advises.
_OPTIONS = (
    *MONGOD.options,
    *("--oplogSize", str(OPLOG_MIB)),
    *("--setParameter", "ttlMonitorEnabled=false"),
    *("--setParameter", "oplogNetworkTimeoutBufferSeconds=2"),
    *("--setParameter", "oplogFetcherSteadyStateMaxFetcherRestarts=0"),
)
REPLICA_SET_SETTINGS = {
    "catchUpTimeoutMillis": 0,  # what only a frozen member has was not acknowledged
    "chainingAllowed": False,  # or a member copies from one that is frozen
    "heartbeatIntervalMillis": 250,
    "heartbeatTimeoutSecs": 1,
}
MEMBER = replace(MONGOD, options=_OPTIONS, is_ready=does_mongod_respond)


@dataclass(slots=True, eq=False)
class Member:
    """One mongod, and the folder of its data."""

    name: str
    folder: Path
    server: KillableServer

    @property
    def port(self) -> int:
        """Return the port that no link disturbs."""
        return self.server.port


class Members:
    """The replica set. `full_disk_obstacle` is why no disk can run full here, or None."""

    def __init__(
        self, folder: Path, links: Links, election_timeout_ms: int, mount_obstacle: str | None
    ) -> None:
        self._links = links
        self.election_timeout_ms = election_timeout_ms
        self.full_disk_obstacle = mount_obstacle
        self.all: list[Member] = []
        for name in MEMBER_NAMES:
            disk = folder / name
            if self.full_disk_obstacle is None:
                self.full_disk_obstacle = mount_disk(disk, DISK_MIB)
            self.all.append(Member(name, disk, KillableServer(MEMBER, disk / "data")))

    @property
    def url(self) -> str:
        """Return the address for clients, which leads through the proxy."""
        hosts = ",".join(f"127.0.0.1:{self._links.ports[member.name]}" for member in self.all)
        return f"mongodb://{hosts}/{DATABASE}?replicaSet=rs0"

    async def start(self) -> None:
        """Start all members, and wait for a primary that others follow; raises CampaignError."""
        for member in self.all:
            await self._links.open_port(member.name, member.port)
        await asyncio.gather(*(self.start_member(member) for member in self.all))
        await asyncio.to_thread(self._initiate)
        await self.wait_until_healthy()

    async def start_member(self, member: Member) -> None:
        """Start a member and give its connections their name; raises CampaignError."""
        starting = asyncio.create_task(member.server.start())
        await asyncio.sleep(0)  # the process is launched before the first wait
        if member.server.pid is not None:
            await self._links.name_process(member.server.pid, member.name)
        await starting

    def _initiate(self) -> None:
        config = {
            "_id": "rs0",
            "members": [
                {"_id": index, "host": f"127.0.0.1:{self._links.ports[member.name]}"}
                for index, member in enumerate(self.all)
            ],
            "settings": {"electionTimeoutMillis": self.election_timeout_ms, **REPLICA_SET_SETTINGS},
        }
        with closing(direct_client(self.all[0].port, 30_000)) as client:
            client.admin.command("replSetInitiate", config)

    def find_primary(self) -> Member | None:
        """Return the member that a majority follows; blocks for some seconds if many hang."""
        candidates = [
            (hello["electionId"], member)
            for member in self.all
            if (hello := self._hello(member)) is not None and hello.get("isWritablePrimary")
        ]
        return max(candidates, key=lambda each: each[0])[1] if candidates else None

    def _hello(self, member: Member) -> Document | None:
        with closing(direct_client(member.port, 700)) as client, suppress(PyMongoError):
            return client.admin.command("hello")
        return None

    async def primary_and_others(self) -> tuple[Member, list[Member]]:
        """Return the primary and the secondaries, once there is a primary; raises CampaignError."""
        deadline = time.monotonic() + PRIMARY_TIMEOUT_S
        while (primary := await asyncio.to_thread(self.find_primary)) is None:
            if time.monotonic() > deadline:
                raise CampaignError("the replica set has no primary although nothing disturbs it")
            await asyncio.sleep(0.1)
        return primary, [member for member in self.all if member is not primary]

    async def wait_until_healthy(self) -> None:
        """Wait until the others follow the primary closely; raises CampaignError."""
        deadline = time.monotonic() + CATCH_UP_TIMEOUT_S
        while not await asyncio.to_thread(self._is_healthy):
            if time.monotonic() > deadline:
                raise CampaignError("the replica set does not become healthy")
            await asyncio.sleep(0.2)

    def _is_healthy(self) -> bool:
        primary = self.find_primary()
        if primary is None:
            return False
        with closing(direct_client(primary.port)) as client, suppress(PyMongoError):
            members = client.admin.command("replSetGetStatus")["members"]
            states = sorted(member["stateStr"] for member in members)
            newest = max(member["optimeDate"] for member in members)
            lags = [(newest - member["optimeDate"]).total_seconds() for member in members]
            # An old primary whose last writes are of its own term has to roll them back first.
            terms = {member["optime"]["t"] for member in members}
            are_following = max(lags) <= 1 and len(terms) == 1
            return states == ["PRIMARY", "SECONDARY", "SECONDARY"] and are_following
        return False

    async def last_election(self) -> Election | None:
        """Return the election of the primary, if that is known."""
        primary, _ = await self.primary_and_others()
        return await asyncio.to_thread(_find_election, primary.port)

    async def step_down(self, seconds: int) -> None:
        """Let the primary step down and not return for so long."""
        primary, _ = await self.primary_and_others()

        def request_step_down() -> None:
            with closing(direct_client(primary.port, 15_000)) as client, suppress(PyMongoError):
                client.admin.command(
                    {"replSetStepDown": seconds, "secondaryCatchUpPeriodSecs": min(seconds, 2)}
                )

        await asyncio.to_thread(request_step_down)

    def end_holds(self, rng: random.Random) -> int:
        """End most holds now, and return how many."""
        ended = 0
        with closing(MongoClient[Document](self.url, tz_aware=True)) as client:
            slots = client[DATABASE]["slots"]
            for slot in slots.find({"bookings.heldUntil": {"$gt": datetime.now(UTC)}}):
                if rng.random() < ENDED_SHARE:
                    now = datetime.now(UTC)
                    changes = _ended_holds(slot["bookings"], now)
                    # A new version, so that no decision on the old times is written over them.
                    found = {"_id": slot["_id"], "version": slot["version"]}
                    update = {"$set": {**changes, "nextDeadline": now}, "$inc": {"version": 1}}
                    is_written = slots.update_one(found, update).modified_count
                    ended += len(changes) // 2 * is_written
        return ended

    def end_mail_waits(self) -> None:
        """Let all mails that wait for a time be due now."""
        with closing(MongoClient[Document](self.url)) as client, suppress(PyMongoError):
            waiting = {"state": "queued", "dueAt": {"$exists": True}}
            client[DATABASE]["outbox"].update_many(waiting, {"$set": {"dueAt": datetime.now(UTC)}})

    def has_open_mails(self, until: datetime) -> bool:
        """Return whether mails about changes before this time may not have been sent."""
        with closing(MongoClient[Document](self.url)) as client, suppress(PyMongoError):
            database = client[DATABASE]
            read = database["outbox_checkpoints"].find_one({"_id": "mail", "at": {"$gt": until}})
            open_mail = database["outbox"].find_one(
                {"dueAt": {"$exists": True}, "at": {"$lt": until}}
            )
            return read is None or open_mail is not None
        return True

    def kill(self) -> None:
        """Kill all members, and delete their disks."""
        for member in self.all:
            member.server.kill()
            if member.folder.is_mount():
                unmount_disk(member.folder)
