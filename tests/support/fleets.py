"""Redis in its three shapes, as operators run it: one server, one behind Sentinel, a Cluster."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from redis import Redis

from slotlock.api.binaries import VALKEY, find
from tests.support.processes import free_port, wait_until

MASTER = "slots"
HASH_SLOTS = 16384


@dataclass(frozen=True)
class Node:
    """One valkey-server."""

    port: int
    process: subprocess.Popen[bytes]

    def ask(self, command: str) -> str:
        """What it answers, as text."""
        with Redis(port=self.port, socket_timeout=2) as client:
            client.response_callbacks.clear()
            answer = client.execute_command(*command.split())
            parts = answer if isinstance(answer, list) else [answer]
            return " ".join(p.decode() if isinstance(p, bytes) else str(p) for p in parts)


def says(node: Node, command: str, state: str) -> bool:
    """Whether a node's answer tells of this state."""
    return state in node.ask(command)


@dataclass(frozen=True)
class Fleet:
    """Servers, and the address that the app would be given."""

    url: str
    nodes: Sequence[Node]

    def all_keys(self) -> list[str]:
        """The keys of all nodes."""
        return [key for node in self.nodes for key in node.ask("KEYS *").split()]

    def commands(self) -> int:
        """How many commands the nodes have processed, those that scripts call included."""
        told = " ".join(node.ask("INFO stats") for node in self.nodes)
        return sum(map(int, re.findall(r"total_commands_processed:(\d+)", told)))

    def flush(self) -> None:
        """Lose everything."""
        for node in self.nodes:
            node.ask("FLUSHALL")


@contextmanager
def node(directory: Path, *options: str, port: int = 0, settings: str = "") -> Iterator[Node]:
    """A running valkey-server, gone at the end."""
    port = port or free_port()
    home = directory / str(port)
    home.mkdir(parents=True)
    settings_file = home / "valkey.conf"  # Sentinel writes into its own
    settings_file.write_text(f"port {port}\nbind 127.0.0.1\ndir {home}\n{settings}\n")
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [find(VALKEY, None), str(settings_file), *options], stdout=log, stderr=log
        )
    try:
        wait_until(lambda: VALKEY.is_ready(port, process.pid), "valkey answers")
        yield Node(port, process)
    finally:
        process.kill()
        process.wait()


@contextmanager
def one_server(directory: Path) -> Iterator[Fleet]:
    """One server."""
    with node(directory, settings='save ""') as only:
        yield Fleet(f"redis://127.0.0.1:{only.port}/0", [only])


@contextmanager
def behind_sentinel(directory: Path, replicas: int = 0) -> Iterator[Fleet]:
    """A master, its replicas and one Sentinel that watches them."""
    own = 'save ""\nrepl-diskless-sync-delay 0'
    with ExitStack() as stack:
        master = stack.enter_context(node(directory, settings=own))
        followers = [
            stack.enter_context(
                node(directory, settings=f"{own}\nreplicaof 127.0.0.1 {master.port}")
            )
            for _ in range(replicas)
        ]
        for follower in followers:
            wait_until(partial(says, follower, "INFO", "master_link_status:up"), "it follows")
        watch = (
            f"sentinel monitor {MASTER} 127.0.0.1 {master.port} 1\n"
            f"sentinel down-after-milliseconds {MASTER} 500\n"
            f"sentinel failover-timeout {MASTER} 2000"
        )
        sentinel = stack.enter_context(node(directory, "--sentinel", settings=watch))
        yield Fleet(f"redis+sentinel://127.0.0.1:{sentinel.port}/{MASTER}/0", [master, *followers])


def _is_linked(node: Node, masters: int) -> bool:
    """Whether a node of a Cluster has connections to and from each of the others."""
    return node.ask("CLUSTER LINKS").count("direction") == 2 * (masters - 1) and (
        node.ask("CLUSTER NODES").count(" connected ") == masters
    )


@contextmanager
def cluster(directory: Path, masters: int = 3) -> Iterator[Fleet]:
    """A Cluster of masters that share the hash slots."""
    with ExitStack() as stack:
        # By default a bus is at the port + 10000, which may not exist.
        buses = [free_port() for _ in range(masters)]
        nodes = [
            stack.enter_context(
                node(directory, settings=f'save ""\ncluster-enabled yes\ncluster-port {bus}')
            )
            for bus in buses
        ]
        each = HASH_SLOTS // masters
        for n, one in enumerate(nodes):
            last = HASH_SLOTS - 1 if n == masters - 1 else (n + 1) * each - 1
            one.ask(f"CLUSTER SET-CONFIG-EPOCH {n + 1}")
            one.ask(f"CLUSTER ADDSLOTSRANGE {n * each} {last}")
            one.ask(f"CLUSTER MEET 127.0.0.1 {nodes[0].port} {buses[0]}")
        for one in nodes:
            wait_until(partial(says, one, "CLUSTER INFO", "cluster_state:ok"), "it is whole")
            wait_until(partial(_is_linked, one, masters), "it tells all others what is published")
        yield Fleet(f"redis+cluster://127.0.0.1:{nodes[0].port}", nodes)


SHAPES = {"one server": one_server, "Sentinel": behind_sentinel, "Cluster": cluster}
