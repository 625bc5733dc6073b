"""Redis alone, behind Sentinels, or as a Cluster; its clients reach it through the proxy."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from bench.app_process import free_port
from bench.faults.topology.links import Links
from bench.faults.topology.servers import CampaignError, KillableServer
from slotlock.devserver.binaries import VALKEY, find_binary

CONFIGURATION = "redis.conf"
MASTER_NAME = "slots"
DOWN_AFTER_MS = 1_000
FAILOVER_TIMEOUT_MS = 4_000
SENTINELS = 3
CLUSTER_MASTERS = 3
HASH_SLOTS = 16384
READY_TIMEOUT_S = 120.0
KINDS = ("alone", "sentinel", "cluster")


class RedisNode(KillableServer):
    """A valkey-server that announces the port of the proxy in front of it.

    Sentinels write into its configuration file whom it follows, which a restart must not undo.
    """

    def __init__(self, name: str, folder: Path, links: Links, *options: str) -> None:
        super().__init__(replace(VALKEY, options=(*VALKEY.options, *options)), folder)
        self.name = name
        self.folder = folder
        self._links = links
        (folder / CONFIGURATION).touch()

    def _launch(self) -> "subprocess.Popen[bytes]":
        command = [find_binary(VALKEY, None), str(self.folder / CONFIGURATION)]
        command += ["--dir", str(self.folder), "--port", str(self.port), "--maxmemory", "0"]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                (*command, *self.server_binary.options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def follow(self, master_port: int) -> None:
        """Let a node that was not started yet follow this master."""
        (self.folder / CONFIGURATION).write_text(f"replicaof 127.0.0.1 {master_port}\n")

    @property
    def announced_port(self) -> int:
        """Return the port that leads through the proxy."""
        return self._links.ports[self.name]

    def empty(self) -> None:
        """Delete all data of the stopped server, but not its configuration."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in ("nodes.conf", "log", CONFIGURATION):
                path.unlink()

    def execute(self, *command: str | int) -> Any:
        """Execute a command on the server itself, or return None if it does not respond."""
        client: Any = Redis(port=self.port, socket_timeout=2, retry=Retry(NoBackoff(), 0))
        client.response_callbacks.clear()
        with closing(client), suppress(RedisError):
            return client.execute_command(*command)
        return None

    def reply_contains(self, text: str, *command: str) -> bool:
        """Return whether the reply to a command contains this text."""
        return text.encode() in (self.execute(*command) or b"")


class Sentinel(RedisNode):
    """A Sentinel, which keeps what it knows in its configuration file."""

    def _launch(self) -> "subprocess.Popen[bytes]":
        command = [find_binary(VALKEY, None), str(self.folder / "sentinel.conf"), "--sentinel"]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def configure(self, master_port: int) -> None:
        """Write the configuration of a Sentinel that monitors this master."""
        (self.folder / "sentinel.conf").write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor {MASTER_NAME} 127.0.0.1 {master_port} {SENTINELS // 2 + 1}\n"
            f"sentinel down-after-milliseconds {MASTER_NAME} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {MASTER_NAME} {FAILOVER_TIMEOUT_MS}\n"
        )


@dataclass(slots=True, eq=False)
class RedisServers:
    """The Redis servers of a campaign, and their address for the app."""

    kind: str
    url: str
    nodes: list[RedisNode]
    sentinels: list[Sentinel]
    links: Links

    async def start_node(self, node: RedisNode) -> None:
        """Start a node again, and give its connections their name; raises CampaignError."""
        await start_named(node, self.links)

    def find_master(self) -> RedisNode:
        """Return the node that takes writes: behind Sentinels, the one they agree on."""
        for sentinel in self.sentinels:
            reply = sentinel.execute("SENTINEL", "get-master-addr-by-name", MASTER_NAME)
            for node in self.nodes:
                if reply and int(reply[1]) == node.announced_port:
                    return node
        return self.nodes[0]

    def is_healthy(self) -> bool:
        """Return whether every node serves, with a complete Cluster or a linked replica."""
        if self.kind == "cluster":
            return all(
                node.reply_contains("cluster_state:ok", "CLUSTER", "INFO") for node in self.nodes
            )
        if any(node.execute("PING") is None for node in self.nodes):
            return False
        master = self.find_master()
        return master.reply_contains("role:master", "INFO", "replication") and all(
            node.reply_contains("master_link_status:up", "INFO", "replication")
            for node in self.nodes
            if node is not master
        )

    async def wait_until_healthy(self) -> None:
        """Wait until all nodes serve; raises CampaignError."""
        await _wait_until(self.is_healthy, "Redis becomes healthy")

    async def repair(self) -> None:
        """Start what does not run, and let all nodes follow the master; raises CampaignError."""
        for node in (*self.sentinels, *self.nodes):
            node.resume()
            if not node.is_running:
                await self.start_node(node)
        await asyncio.to_thread(self._configure)

    def _configure(self) -> None:
        master = self.find_master()
        for node in self.nodes:
            node.execute("CONFIG", "SET", "maxmemory", 0)
            # Sentinels do nothing for 30 s whenever a busy machine delays their timers.
            if self.kind == "sentinel" and node is not master:
                node.execute("REPLICAOF", "127.0.0.1", master.announced_port)
        if self.kind == "sentinel":
            master.execute("REPLICAOF", "NO", "ONE")

    def kill(self) -> None:
        """Kill all servers."""
        for server in (*self.sentinels, *self.nodes):
            server.kill()


async def start_named(node: RedisNode, links: Links) -> None:
    """Start a node and give its connections their name; raises CampaignError."""
    starting = asyncio.create_task(node.start())
    await asyncio.sleep(0)  # the process is launched before the first wait
    if node.pid is not None:
        await links.name_process(node.pid, node.name)
    await starting


async def _wait_until(condition: Callable[[], bool], description: str) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_S
    while not await asyncio.to_thread(condition):
        if time.monotonic() > deadline:
            raise CampaignError(f"after {READY_TIMEOUT_S:g} s it is not true that {description}")
        await asyncio.sleep(0.1)


async def start_redis(kind: str, folder: Path, links: Links) -> RedisServers:
    """Start the servers of one kind of topology; raises CampaignError."""
    if kind == "cluster":
        return await _start_cluster(folder, links)
    if kind == "sentinel":
        return await _start_with_sentinels(folder, links)
    node = RedisNode("redis0", folder / "redis0", links)
    port = await links.open_port(node.name, node.port)
    await start_named(node, links)
    return RedisServers(kind, f"redis://127.0.0.1:{port}/0", [node], [], links)


async def _start_with_sentinels(folder: Path, links: Links) -> RedisServers:
    nodes: list[RedisNode] = []
    for index in range(2):
        name = f"redis{index}"
        options = ["--repl-diskless-sync-delay", "0"]
        node = RedisNode(name, folder / name, links)
        port = await links.open_port(name, node.port)
        options += ["--replica-announce-ip", "127.0.0.1", "--replica-announce-port", str(port)]
        if nodes:
            node.follow(nodes[0].announced_port)
        node.server_binary = replace(VALKEY, options=(*VALKEY.options, *options))
        await start_named(node, links)
        nodes.append(node)
    sentinels = []
    for index in range(SENTINELS):
        sentinel = Sentinel(f"sentinel{index}", folder / f"sentinel{index}", links)
        sentinel.configure(nodes[0].announced_port)
        await start_named(sentinel, links)
        sentinels.append(sentinel)
    hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in sentinels)
    url = f"redis+sentinel://{hosts}/{MASTER_NAME}/0"
    servers = RedisServers("sentinel", url, nodes, sentinels, links)
    await servers.wait_until_healthy()
    await _wait_until(lambda: _do_sentinels_agree(sentinels), "the Sentinels know each other")
    return servers


def _do_sentinels_agree(sentinels: Sequence[Sentinel]) -> bool:
    return all(
        sentinel.reply_contains("status=ok,", "INFO", "sentinel")
        and sentinel.reply_contains(f"sentinels={SENTINELS}", "INFO", "sentinel")
        and sentinel.reply_contains("slaves=1", "INFO", "sentinel")
        for sentinel in sentinels
    )


async def _start_cluster(folder: Path, links: Links) -> RedisServers:
    nodes: list[RedisNode] = []
    for index in range(CLUSTER_MASTERS):
        name = f"redis{index}"
        node = RedisNode(name, folder / name, links)
        port = await links.open_port(name, node.port)
        options = ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
        options += ["--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", str(port)]
        options += ["--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"]
        node.server_binary = replace(VALKEY, options=(*VALKEY.options, *options))
        await start_named(node, links)
        nodes.append(node)
    await asyncio.to_thread(_join_cluster, nodes)
    servers = RedisServers(
        "cluster", f"redis+cluster://127.0.0.1:{nodes[0].announced_port}", nodes, [], links
    )
    await servers.wait_until_healthy()
    await _wait_until(lambda: _are_linked(nodes), "the nodes of the Cluster are linked")
    return servers


def _join_cluster(nodes: Sequence[RedisNode]) -> None:
    each = HASH_SLOTS // len(nodes)
    first = nodes[0]
    bus = first.server_binary.options[first.server_binary.options.index("--cluster-port") + 1]
    for index, node in enumerate(nodes):
        last = HASH_SLOTS - 1 if node is nodes[-1] else (index + 1) * each - 1
        node.execute("CLUSTER", "SET-CONFIG-EPOCH", index + 1)
        node.execute("CLUSTER", "ADDSLOTSRANGE", index * each, last)
        # The bus is not proxied: its partitions are those that Redis handles, not slotlock.
        node.execute("CLUSTER", "MEET", "127.0.0.1", first.port, bus)


def _are_linked(nodes: Sequence[RedisNode]) -> bool:
    return all(
        (node.execute("CLUSTER", "NODES") or b"").count(b" connected ") == len(nodes)
        for node in nodes
    )
