"""The three Redis topologies: a single server, a server behind Sentinel, and a Cluster."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from redis import Redis

from slotlock.devserver.binaries import VALKEY, find_binary
from tests.support.apps.processes import free_port
from tests.support.polling import wait_until

SENTINEL_MASTER = "slots"
HASH_SLOTS = 16384


@dataclass(frozen=True)
class RedisNode:
    """A valkey-server process."""

    port: int
    process: subprocess.Popen[bytes]

    def run_command(self, command: str) -> str:
        """Run a command and return the reply as text."""
        with Redis(port=self.port, socket_timeout=20) as client:
            client.response_callbacks.clear()
            reply = client.execute_command(*command.split())
            parts = reply if isinstance(reply, list) else [reply]
            return " ".join(p.decode() if isinstance(p, bytes) else str(p) for p in parts)


def reply_contains(node: RedisNode, command: str, text: str) -> bool:
    """Return whether a node's reply to a command contains this text."""
    return text in node.run_command(command)


@dataclass(frozen=True)
class RedisTopology:
    """Redis servers, and the URL for the settings of the app."""

    url: str
    nodes: Sequence[RedisNode]

    def all_keys(self) -> list[str]:
        """Return the keys of all nodes."""
        return [key for node in self.nodes for key in node.run_command("KEYS *").split()]

    def commands_processed(self) -> int:
        """Return the number of commands that all nodes processed, including those of scripts."""
        statistics = " ".join(node.run_command("INFO stats") for node in self.nodes)
        return sum(map(int, re.findall(r"total_commands_processed:(\d+)", statistics)))

    def flush_all(self) -> None:
        """Delete all keys."""
        for node in self.nodes:
            node.run_command("FLUSHALL")


@contextmanager
def start_node(
    directory: Path, *options: str, port: int = 0, settings: str = ""
) -> Iterator[RedisNode]:
    """Run a valkey-server until the end of the block."""
    port = port or free_port()
    home = directory / str(port)
    home.mkdir(parents=True)
    settings_file = home / "valkey.conf"  # a Sentinel rewrites its file
    settings_file.write_text(f"port {port}\nbind 127.0.0.1\ndir {home}\n{settings}\n")
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [find_binary(VALKEY, None), str(settings_file), *options], stdout=log, stderr=log
        )

    def is_ready() -> bool:
        assert process.poll() is None, f"valkey ended: {(home / 'log').read_text()}"
        return VALKEY.is_ready(port, process.pid)

    try:
        wait_until(is_ready, "valkey responds")
        yield RedisNode(port, process)
    finally:
        process.kill()
        process.wait()


@contextmanager
def single_server_topology(directory: Path) -> Iterator[RedisTopology]:
    """Run a single server."""
    with start_node(directory, settings='save ""') as only:
        yield RedisTopology(f"redis://127.0.0.1:{only.port}/0", [only])


@contextmanager
def sentinel_topology(directory: Path, replicas: int = 0) -> Iterator[RedisTopology]:
    """Run a master, its replicas and one Sentinel that monitors them."""
    own = 'save ""\nrepl-diskless-sync-delay 0'
    with ExitStack() as stack:
        master = stack.enter_context(start_node(directory, settings=own))
        followers = [
            stack.enter_context(
                start_node(directory, settings=f"{own}\nreplicaof 127.0.0.1 {master.port}")
            )
            for _ in range(replicas)
        ]
        for follower in followers:
            wait_until(
                partial(reply_contains, follower, "INFO", "master_link_status:up"),
                "the replica follows the master",
            )
        # A busy machine may hold the master up. Without replicas, there is none to promote.
        down_after_ms = 3_000 if replicas else 60_000
        watch = (
            f"sentinel monitor {SENTINEL_MASTER} 127.0.0.1 {master.port} 1\n"
            f"sentinel down-after-milliseconds {SENTINEL_MASTER} {down_after_ms}\n"
            f"sentinel failover-timeout {SENTINEL_MASTER} 2000"
        )
        sentinel = stack.enter_context(start_node(directory, "--sentinel", settings=watch))
        for follower in followers:
            wait_until(
                partial(
                    reply_contains,
                    sentinel,
                    f"SENTINEL REPLICAS {SENTINEL_MASTER}",
                    str(follower.port),
                ),
                "the Sentinel knows the replica",
            )
        yield RedisTopology(
            f"redis+sentinel://127.0.0.1:{sentinel.port}/{SENTINEL_MASTER}/0", [master, *followers]
        )


def _is_linked(node: RedisNode, masters: int) -> bool:
    """Return whether a node of a Cluster is connected to and from every other master."""
    return node.run_command("CLUSTER LINKS").count("direction") == 2 * (masters - 1) and (
        node.run_command("CLUSTER NODES").count(" connected ") == masters
    )


@contextmanager
def cluster_topology(directory: Path, masters: int = 3) -> Iterator[RedisTopology]:
    """Run a Cluster of masters that share the hash slots."""
    with ExitStack() as stack:
        # By default a bus is at the port + 10000, which may not exist.
        buses = [free_port() for _ in range(masters)]
        nodes = [
            stack.enter_context(
                start_node(directory, settings=f'save ""\ncluster-enabled yes\ncluster-port {bus}')
            )
            for bus in buses
        ]
        each = HASH_SLOTS // masters
        for n, node in enumerate(nodes):
            last = HASH_SLOTS - 1 if n == masters - 1 else (n + 1) * each - 1
            node.run_command(f"CLUSTER SET-CONFIG-EPOCH {n + 1}")
            node.run_command(f"CLUSTER ADDSLOTSRANGE {n * each} {last}")
            node.run_command(f"CLUSTER MEET 127.0.0.1 {nodes[0].port} {buses[0]}")
        for node in nodes:
            wait_until(
                partial(reply_contains, node, "CLUSTER INFO", "cluster_state:ok"),
                "the Cluster is complete",
            )
            wait_until(partial(_is_linked, node, masters), "the node is linked to all others")
        yield RedisTopology(f"redis+cluster://127.0.0.1:{nodes[0].port}", nodes)


TOPOLOGIES = {
    "one server": single_server_topology,
    "Sentinel": sentinel_topology,
    "Cluster": cluster_topology,
}
