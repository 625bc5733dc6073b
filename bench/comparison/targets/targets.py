"""The targets of the comparison: three peers and slotlock, with their slots and users."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pymongo import MongoClient

from bench.app_process import PROJECT
from bench.comparison.load import WORKLOADS
from bench.comparison.targets import node_peers, slotlock_target
from bench.comparison.targets.apps import Command
from bench.comparison.targets.slots import PEER_SHAPE, SLOTLOCK_SHAPE, Document, TargetSlots
from slotlock.devserver.embedded import EmbeddedServers

USERS = 500
SLOTLOCK, P1, P2, P2B = "slotlock", "P1", "P2", "P2b"
# slotlock with rate limits; all other targets have none.
LIMITED = "limited"
# Another checkout of slotlock.
BASE = "base"
PEERS = (P1, P2, P2B)
LIMITED_WORKLOADS = ("spread", "one")


@dataclass(frozen=True, slots=True)
class Target:
    """One measured program.

    `kind` selects the requests in load.lua; `statuses` are those that its design returns.
    `fresh_tokens` takes the number of users.
    """

    name: str
    kind: str
    command: Command
    slots: TargetSlots
    fresh_tokens: Callable[[int], list[str]]
    statuses: frozenset[str] = frozenset({"200"})
    workloads: tuple[str, ...] = WORKLOADS


@dataclass(frozen=True, slots=True)
class Databases:
    """The servers, and the slots of slotlock and of the peers, which share theirs."""

    servers: EmbeddedServers
    first_day: datetime
    slotlock_slots: TargetSlots
    peer_slots: TargetSlots

    @classmethod
    def create(
        cls, servers: EmbeddedServers, client: MongoClient[Document], first_day: datetime
    ) -> "Databases":
        """Return the databases, which have no slots yet."""
        return cls(
            servers,
            first_day,
            TargetSlots(client, slotlock_target.DATABASE_NAME, SLOTLOCK_SHAPE, first_day),
            TargetSlots(client, node_peers.DATABASE_NAME, PEER_SHAPE, first_day),
        )


def create_targets(databases: Databases, peers_home: Path, processes: int) -> list[Target]:
    """Return all targets with so many processes each."""
    return [
        _p1(databases, peers_home, processes),
        _p2(P2, databases, peers_home, processes, {}),
        _p2(P2B, databases, peers_home, processes, node_peers.P2B_OPTIONS),
        _slotlock(SLOTLOCK, databases, processes, slotlock_target.RATE_LIMITS_OFF, WORKLOADS),
        _slotlock(LIMITED, databases, processes, slotlock_target.RATE_LIMITS_ON, LIMITED_WORKLOADS),
    ]


def create_checkout(name: str, databases: Databases, project: Path, processes: int) -> Target:
    """Return the checkout of slotlock in the folder `project`, with so many processes."""
    options = slotlock_target.RATE_LIMITS_OFF
    return _slotlock(name, databases, processes, options, WORKLOADS, project)


def _p1(databases: Databases, peers_home: Path, processes: int) -> Target:
    return Target(
        name=P1,
        kind="rest",
        command=node_peers.p1_command(peers_home, databases.servers, processes),
        slots=databases.peer_slots,
        fresh_tokens=node_peers.tokens,
        statuses=frozenset({"200", "409", "423"}),
    )


def _p2(
    name: str, databases: Databases, peers_home: Path, processes: int, options: Mapping[str, str]
) -> Target:
    return Target(
        name=name,
        kind="mercurius",
        command=node_peers.p2_command(peers_home, databases.servers, processes, options),
        slots=databases.peer_slots,
        fresh_tokens=node_peers.tokens,
    )


def _slotlock(
    name: str,
    databases: Databases,
    processes: int,
    options: Mapping[str, str],
    workloads: tuple[str, ...],
    project: Path = PROJECT,
) -> Target:
    return Target(
        name=name,
        kind="slotlock",
        command=slotlock_target.command(databases.servers, processes, options, project=project),
        slots=databases.slotlock_slots,
        fresh_tokens=lambda count: slotlock_target.tokens(databases.servers, count),
        workloads=workloads,
    )
