"""What is measured: the two peers and slotlock, each with its slots and its people."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pymongo import MongoClient

from bench import node_peers, slotlock_target
from bench.slots import PEER_SHAPE, SLOTLOCK_SHAPE, Document, TargetSlots
from bench.target_apps import Command
from slotlock.devserver.embedded import EmbeddedServers

USERS = 500


@dataclass(frozen=True, slots=True)
class Target:
    """One of the things that are measured."""

    name: str
    kind: str  # as load.lua knows it
    command: Command
    slots: TargetSlots
    fresh_tokens: Callable[[], list[str]]
    statuses: frozenset[str]  # that its design answers


def create_targets(
    servers: EmbeddedServers, client: MongoClient[Document], peers_home: Path
) -> list[Target]:
    """The two peers, then slotlock."""

    def peer(name: str, kind: str, script: str, ready_path: str, statuses: set[str]) -> Target:
        own = f"bench_{name.lower()}"
        return Target(
            name=name,
            kind=kind,
            command=node_peers.command(peers_home, script, ready_path, servers, own),
            slots=TargetSlots(client, own, PEER_SHAPE),
            fresh_tokens=lambda: node_peers.tokens(USERS),
            statuses=frozenset(statuses),
        )

    own = "bench_slotlock"
    slotlock = Target(
        name="slotlock",
        kind="slotlock",
        command=slotlock_target.command(servers, own),
        slots=TargetSlots(client, own, SLOTLOCK_SHAPE),
        fresh_tokens=lambda: slotlock_target.tokens(servers, own, USERS),
        statuses=frozenset({"200"}),
    )
    return [
        peer("P1", "rest", "p1_express.js", "/ping", {"200", "409", "423"}),
        peer("P2", "mercurius", "p2_mercurius.js", "/graphql?query=%7Bping%7D", {"200"}),
        slotlock,
    ]
