"""Embedded servers store acknowledged writes, serve this machine only and leave no process."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from pymongo import MongoClient, WriteConcern

from slotlock.devserver import embedded
from slotlock.devserver.binaries import VALKEY, find_binary
from slotlock.devserver.embedded import EmbeddedServers, embedded_servers
from tests.devserver.test_binaries import start_error

OTHER_MONGO = "mongodb://database.invalid/"
OTHER_REDIS = "redis://cache.invalid/0"

# Runs servers in the given directory, and prints the number of each acknowledged write.
PARENT_SCRIPT = """
import sys
from pathlib import Path
from pymongo import MongoClient, WriteConcern
from slotlock.devserver.embedded import embedded_servers

with embedded_servers(Path(sys.argv[1])) as servers:
    bookings = MongoClient(servers.mongo_url).slotlock.get_collection(
        "bookings", write_concern=WriteConcern("majority")
    )
    for number in range(1_000_000):
        bookings.insert_one({"_id": number})
        print(number, flush=True)
"""

linux_only = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends a child with its parent"
)


def port_of(url: str) -> int:
    """Return the port in a URL."""
    port = urlsplit(url).port
    assert port is not None
    return port


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not, as it holds no resources."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def listens(host: str, port: int) -> bool:
    """Return whether a program accepts connections there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        return probe.connect_ex((host, port)) == 0


def eventually(condition: Callable[[], bool], timeout_s: float = 30) -> bool:
    """Return whether the condition holds in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def pids_in(directory: Path) -> dict[str, int]:
    """Return the pids in the pid files of a data directory, by server."""
    return {path.stem: int(path.read_text()) for path in directory.glob("*.pid")}


@contextmanager
def other_process(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that is not a child of the embedded servers' parent."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def insert_booking(servers: EmbeddedServers, number: int) -> None:
    """Insert a document with an acknowledged write."""
    with MongoClient[dict[str, Any]](servers.mongo_url) as client:
        bookings = client.slotlock.get_collection(
            "bookings", write_concern=WriteConcern("majority")
        )
        bookings.insert_one({"_id": number})


def booking_numbers(servers: EmbeddedServers) -> set[int]:
    """Return the numbers of all inserted documents."""
    with MongoClient[dict[str, Any]](servers.mongo_url) as client:
        return {booking["_id"] for booking in client.slotlock.bookings.find()}


def test_data_survives_a_restart_on_another_port(tmp_path: Path) -> None:
    directory = tmp_path / "a directory"
    with embedded_servers(directory) as before:
        insert_booking(before, 1)
        with closing(redis.Redis.from_url(before.redis_url)) as cache:
            cache.set("remaining", 7)
    with socket.socket() as port_holder:
        port_holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port_holder.bind(("127.0.0.1", port_of(before.mongo_url)))
        with embedded_servers(directory) as after:
            assert port_of(after.mongo_url) != port_of(before.mongo_url)
            insert_booking(after, 2)
            assert booking_numbers(after) == {1, 2}
            with closing(redis.Redis.from_url(after.redis_url)) as cache:
                assert cache.get("remaining") == b"7"


def test_servers_listen_on_loopback_only_in_a_session_of_their_own(tmp_path: Path) -> None:
    with embedded_servers(tmp_path) as servers:
        for port in (port_of(servers.mongo_url), port_of(servers.redis_url)):
            assert listens("127.0.0.1", port)
            # A server that listens on every address accepts connections on these two as well.
            assert not listens("127.0.0.2", port)
            assert not listens("::1", port)
        for pid in pids_in(tmp_path).values():
            assert os.getsid(pid) == pid


def test_a_new_data_directory_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "data"
    with embedded_servers(directory, mongo_url=OTHER_MONGO):
        assert directory.stat().st_mode & 0o777 == 0o700


def test_a_second_instance_on_the_same_directory_fails_with_one_line(tmp_path: Path) -> None:
    with embedded_servers(tmp_path, mongo_url=OTHER_MONGO) as servers:
        line = start_error(tmp_path, mongo_url=OTHER_MONGO)
        assert str(tmp_path) in line
        assert f"pid {os.getpid()}" in line
        assert "SLOTLOCK_DATA_DIR" in line
        assert listens("127.0.0.1", port_of(servers.redis_url))
    with embedded_servers(tmp_path, mongo_url=OTHER_MONGO):
        assert "valkey" in pids_in(tmp_path)


@linux_only
def test_acknowledged_writes_survive_a_killed_parent_and_its_servers_do_not(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT_SCRIPT, tmp_path], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        acknowledged = {int(parent.stdout.readline()) for _ in range(200)}
        orphans = pids_in(tmp_path)
        parent.send_signal(signal.SIGKILL)
        acknowledged |= {int(number) for number in parent.stdout}
    assert set(orphans) == {"mongod", "valkey"}
    with embedded_servers(tmp_path) as servers:
        assert acknowledged <= booking_numbers(servers)
        assert pids_in(tmp_path).keys() == orphans.keys()
        assert not set(pids_in(tmp_path).values()) & set(orphans.values())


@linux_only
def test_killing_the_parent_kills_both_servers(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT_SCRIPT, tmp_path], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        servers = pids_in(tmp_path)
        assert all(is_running(pid) for pid in servers.values())
        parent.send_signal(signal.SIGKILL)
    assert set(servers) == {"mongod", "valkey"}
    assert eventually(lambda: not any(is_running(pid) for pid in servers.values()))


def test_a_leftover_server_is_killed_before_the_directory_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "valkey").mkdir()
    port = embedded._free_port()
    options = ("--dir", str(tmp_path / "valkey"), "--port", str(port), "--set-proc-title", "no")
    with other_process(find_binary(VALKEY, None), *options) as leftover:
        assert eventually(lambda: listens("127.0.0.1", port))
        (tmp_path / "valkey.pid").write_text(str(leftover.pid))
        with embedded_servers(tmp_path, mongo_url=OTHER_MONGO):
            assert leftover.wait(30) == -signal.SIGKILL


def test_another_program_with_the_pid_of_a_leftover_server_is_not_killed(tmp_path: Path) -> None:
    with other_process("sleep", "60") as sleeper:
        (tmp_path / "valkey.pid").write_text(str(sleeper.pid))
        with embedded_servers(tmp_path, mongo_url=OTHER_MONGO):
            assert sleeper.poll() is None


def test_a_server_whose_port_is_taken_meanwhile_starts_on_another_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free_port = embedded._free_port
    with socket.create_server(("127.0.0.1", 0)) as port_holder:
        taken = port_holder.getsockname()[1]
        offered = [taken, taken]  # one attempt for each server
        monkeypatch.setattr(
            embedded, "_free_port", lambda: offered.pop() if offered else free_port()
        )
        with embedded_servers(tmp_path) as servers:
            insert_booking(servers, 1)
            assert taken not in (port_of(servers.mongo_url), port_of(servers.redis_url))
    assert not offered


def test_a_given_url_starts_no_server(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with embedded_servers(directory, mongo_url=OTHER_MONGO, redis_url=OTHER_REDIS) as servers:
        assert servers == EmbeddedServers(OTHER_MONGO, OTHER_REDIS)
        assert not directory.exists()
    with embedded_servers(directory, mongo_url=OTHER_MONGO) as servers:
        assert servers.mongo_url == OTHER_MONGO
        assert pids_in(directory).keys() == {"valkey"}
    with embedded_servers(directory, redis_url=OTHER_REDIS) as servers:
        assert servers.redis_url == OTHER_REDIS
        assert pids_in(directory).keys() == {"mongod"}


def test_leaving_the_context_stops_the_servers_and_raises_the_exception(tmp_path: Path) -> None:
    started: list[EmbeddedServers] = []
    running: dict[str, int] = {}

    def fail_inside() -> None:
        with embedded_servers(tmp_path) as servers:
            started.append(servers)
            running.update(pids_in(tmp_path))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert running.keys() == {"mongod", "valkey"}
    assert not any(is_running(pid) for pid in running.values())
    assert not listens("127.0.0.1", port_of(started[0].mongo_url))
    assert not listens("127.0.0.1", port_of(started[0].redis_url))
    assert not pids_in(tmp_path)


def test_a_server_that_dies_during_its_start_reports_its_last_error_and_stops_the_other(
    tmp_path: Path,
) -> None:
    (tmp_path / "mongo").mkdir()
    (tmp_path / "mongo" / "storage.bson").write_text("not a storage engine's")
    line = start_error(tmp_path)
    assert line.startswith("mongod died (")
    assert "Unable to read the storage engine metadata file: Incorrect BSON length" in line
    assert line.endswith(f"see {tmp_path / 'mongod.log'}")
    assert len(line) < 300 + len(str(tmp_path))
    assert not pids_in(tmp_path)


def test_a_directory_that_cannot_be_written_gives_one_line_with_the_remedy(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    line = start_error(tmp_path / "file" / "data", mongo_url=OTHER_MONGO)
    assert f"cannot write to {tmp_path / 'file' / 'data'} (Not a directory)" in line
    assert "SLOTLOCK_DATA_DIR" in line
