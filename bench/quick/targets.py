"""The targets of the benchmark: the two peers and slotlock, with their slots and users."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pymongo import MongoClient

from bench.quick import node_peers, slotlock_target
from bench.quick.slots import PEER_SHAPE, SLOTLOCK_SHAPE, Document, TargetSlots
from bench.quick.target_apps import Command
from slotlock.devserver.embedded import EmbeddedServers

USERS = 500


@dataclass(frozen=True, slots=True)
class Target:
    """One measured program.

    `kind` selects the requests in load.lua; `statuses` are those that its design returns.
    """

    name: str
    kind: str
    command: Command
    slots: TargetSlots
    fresh_tokens: Callable[[], list[str]]
    statuses: frozenset[str]


def create_targets(
    servers: EmbeddedServers, client: MongoClient[Document], peers_home: Path
) -> list[Target]:
    """Return the two peers and slotlock."""

    def peer(name: str, kind: str, script: str, ready_path: str, statuses: set[str]) -> Target:
        database_name = f"bench_{name.lower()}"
        return Target(
            name=name,
            kind=kind,
            command=node_peers.command(peers_home, script, ready_path, servers, database_name),
            slots=TargetSlots(client, database_name, PEER_SHAPE),
            fresh_tokens=lambda: node_peers.tokens(USERS),
            statuses=frozenset(statuses),
        )

    database_name = "bench_slotlock"
    slotlock = Target(
        name="slotlock",
        kind="slotlock",
        command=slotlock_target.command(servers, database_name),
        slots=TargetSlots(client, database_name, SLOTLOCK_SHAPE),
        fresh_tokens=lambda: slotlock_target.tokens(servers, database_name, USERS),
        statuses=frozenset({"200"}),
    )
    return [
        peer("P1", "rest", "p1_express.js", "/ping", {"200", "409", "423"}),
        peer("P2", "mercurius", "p2_mercurius.js", "/graphql?query=%7Bping%7D", {"200"}),
        slotlock,
    ]
