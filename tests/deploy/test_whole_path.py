"""The way of the guide on one machine: servers with passwords, the units' commands, and a proxy."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx
import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError
from redis import Redis

from conformance.clients.scenario import BOOK, CREATE, SIGN_IN
from conformance.proxies.packages import ProxyMissingError, find_proxy
from conformance.proxies.process import running_proxy
from slotlock.api.settings.env_file import read_env_file
from slotlock.devserver.binaries import MONGOD, find_binary
from slotlock.devserver.embedded import EmbeddedServers
from tests.deploy.test_deploy_files import DEPLOY, ROOT, UNITS, directives
from tests.support.apps.processes import app_environment, app_process, free_port
from tests.support.apps.redis_topologies import start_node
from tests.support.polling import wait_until

GUIDE = (ROOT / "docs" / "guides" / "deployment.md").read_text()
# Where `make conformance` downloads it.
PROXIES_HOME = ROOT / ".bench" / "proxies"
SLOTLOCK = (sys.executable, "-m", "slotlock")
CLIENTS, POSTS = 8, 200
ADMIN = {"email": "you@example.org", "password": "correct horse battery"}
SECRETS = {
    "MONGO_ROOT_PASSWORD": "of-root",
    "MONGO_PASSWORD": "of-slotlock",
    "REDIS_PASSWORD": "of-redis",
}


@contextmanager
def mongod_of_the_guide(folder: Path) -> Iterator[int]:
    """Run mongod with deploy/mongodb/mongod.conf, set it up, and yield its port."""
    port, key = free_port(), folder / "mongod.key"
    key.write_text("0123456789abcdef" * 4)
    key.chmod(0o400)
    config = (DEPLOY / "mongodb" / "mongod.conf").read_text()
    (folder / "db").mkdir()
    for path, own in {
        "27017": str(port),
        "/var/lib/mongodb": str(folder / "db"),
        "/var/log/mongodb": str(folder),
        "/etc/mongod.key": str(key),
    }.items():
        assert path in config
        config = config.replace(path, own)
    (folder / "mongod.conf").write_text(config)
    command = [find_binary(MONGOD, None), "--config", str(folder / "mongod.conf")]
    with subprocess.Popen([*command, "--nounixsocket"], stdout=subprocess.DEVNULL) as process:
        try:
            set_up(port)
            yield port
        finally:
            process.kill()


def set_up(port: int) -> None:
    """Run set-up.js until it succeeds, or do the same where there is no mongosh."""
    script = DEPLOY / "mongodb" / "set-up.js"
    if mongosh := shutil.which("mongosh"):
        command = [mongosh, "--quiet", "--norc", "--port", str(port), str(script)]
        variables = os.environ | SECRETS | {"MONGO_HOST": f"127.0.0.1:{port}"}
        wait_until(
            lambda: subprocess.run(command, env=variables, check=False).returncode == 0, "set up"
        )
        return
    roles = re.findall(r'{ role: "(\w+)", db: "(\w+)" }', script.read_text())
    url = f"mongodb://127.0.0.1:{port}/?directConnection=true"
    with closing(MongoClient[dict[str, object]](url)) as client:
        member = {"_id": 0, "host": f"127.0.0.1:{port}"}
        client.admin.command("replSetInitiate", {"_id": "rs0", "members": [member]})
        wait_until(
            lambda: client.admin.command("hello")["isWritablePrimary"], "mongod is the primary"
        )
        # As the script: the first user on the same machine, and then with its rights.
        password = SECRETS["MONGO_ROOT_PASSWORD"]
        client.admin.command("createUser", "root", pwd=password, roles=["root"])
    with closing(MongoClient[dict[str, object]](url, username="root", password=password)) as client:
        client.slotlock.command(
            "createUser",
            "slotlock",
            pwd=SECRETS["MONGO_PASSWORD"],
            roles=[{"role": role, "db": database} for role, database in roles],
        )
        with pytest.raises(PyMongoError), closing(MongoClient[dict[str, object]](url)) as stranger:
            stranger.slotlock.users.find_one({})


def write_settings(folder: Path, mongo_port: int, redis_port: int) -> Path:
    """Write the file of the units with the command of the guide, for these ports."""
    (command,) = re.findall(r"^sed -e .+\\\n.+slotlock\.env$", GUIDE, re.MULTILINE)
    file = folder / "slotlock.env"
    subprocess.run(
        ["sh", "-ec", command.replace("/etc/slotlock/slotlock.env", str(file))],
        cwd=ROOT,
        env=os.environ | SECRETS,
        check=True,
    )
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text().replace(":27017", f":{mongo_port}").replace(":6379", f":{redis_port}")
    file.write_text(text)
    return file


def unit_command(name: str) -> list[str]:
    """Return the command of a unit, with the slotlock of the tests."""
    (unit,) = (unit for unit in UNITS if unit.stem == name)
    program, *arguments = shlex.split(directives(unit)["ExecStart"][0])
    assert program == "/opt/slotlock/bin/slotlock"
    return [*SLOTLOCK, *arguments]


@pytest.fixture(scope="module")
def nginx() -> Path:
    """Return the program, or skip the test."""
    try:
        return find_proxy("nginx", PROXIES_HOME)
    except ProxyMissingError as error:
        pytest.skip(str(error))


def test_the_path_of_the_guide_ends_in_a_booking_through_the_proxy(
    tmp_path: Path, nginx: Path
) -> None:
    with (
        mongod_of_the_guide(tmp_path) as mongo_port,
        start_node(tmp_path / "redis") as redis,
    ):
        with closing(Redis(port=redis.port)) as client:
            client.config_set("requirepass", SECRETS["REDIS_PASSWORD"])
        file = write_settings(tmp_path, mongo_port, redis.port)
        settings = read_env_file(file)
        sl = [*SLOTLOCK, "--env-file", str(file)]
        subprocess.run([*sl, "migrate"], check=True, capture_output=True)
        create = [*sl, "users", "create", ADMIN["email"], "--role", "admin", "--password-stdin"]
        subprocess.run(create, input=ADMIN["password"], text=True, check=True, capture_output=True)
        doctor = subprocess.run([*sl, "doctor"], text=True, check=False, capture_output=True)
        assert doctor.returncode == 0, doctor.stdout + doctor.stderr
        assert "not checked" not in doctor.stdout
        assert re.search(
            rf"^ok +slotlock +.+ the settings of {file}, ", doctor.stdout, re.MULTILINE
        )
        assert re.search(r"^ok +admin +there is one$", doctor.stdout, re.MULTILINE)
        serve, work = unit_command("slotlock"), unit_command("slotlock-worker")
        worker_port = "SLOTLOCK_QUEUE_WORKER_METRICS_PORT"
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            app_process(settings, tmp_path / "app", serve, listener=listener) as app,
            app_process(settings, tmp_path / "worker", work, port_variable=worker_port) as worker,
            running_proxy(
                "nginx", nginx, [int(app.url.rpartition(":")[2])], tmp_path / "nginx"
            ) as port,
        ):
            book_through(f"http://127.0.0.1:{port}")
            assert app.stop() == worker.stop() == 0
        assert "no mails without SLOTLOCK_SMTP_URL" in worker.log
        for process, end in ((app, "slotlock has stopped"), (worker, "the worker has stopped")):
            assert process.log.count(end) == 1
        assert "stops after SIGTERM" in app.log


def book_through(address: str) -> None:
    """Sign in, create a slot and book it; the proxy hides what is for operators."""
    with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
        assert client.get("/").json()["graphql"] == "https://slots.example.org/graphql"
        assert client.get("/board").status_code == 200
        assert client.get("/metrics").status_code == 404

        def execute(query: str, **variables: str) -> dict[str, str]:
            response = client.post("/graphql", json={"query": query, "variables": variables})
            (result,) = response.json()["data"].values()
            return dict(result)

        token = execute(SIGN_IN, **ADMIN)["accessToken"]
        client.headers["Authorization"] = f"Bearer {token}"
        assert execute(BOOK, slot=execute(CREATE)["id"])["__typename"] == "Booked"


@pytest.mark.parametrize("has_socket_unit", [True, False], ids=["socket", "control"])
def test_clients_wait_while_the_app_behind_a_socket_unit_restarts(
    servers: EmbeddedServers, tmp_path: Path, nginx: Path, *, has_socket_unit: bool
) -> None:
    settings = app_environment(servers, f"restart_{has_socket_unit}")
    serve = unit_command("slotlock")
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        app_ports = [listener.getsockname()[1]]
        port = stack.enter_context(running_proxy("nginx", nginx, app_ports, tmp_path / "nginx"))
        app = stack.enter_context(
            app_process(settings, tmp_path / "first", serve, listener=listener)
        )
        statuses = stack.enter_context(posts_through(f"http://127.0.0.1:{port}/graphql"))
        wait_until(lambda: len(statuses) > POSTS, "requests")
        if not has_socket_unit:
            listener.close()
            assert app.stop() == 0
            wait_until(lambda: 502 in statuses, "a request is lost")
            return
        assert app.stop() == 0
        stack.enter_context(app_process(settings, tmp_path / "second", serve, listener=listener))
        count = len(statuses)
        wait_until(lambda: len(statuses) > count + POSTS, "more requests")
    assert set(statuses) == {200}


@contextmanager
def posts_through(url: str) -> Iterator[list[int]]:
    """Send one POST after the other from some clients, and yield the list of their statuses."""
    statuses: list[int] = []
    is_over = threading.Event()

    def send() -> None:
        with httpx.Client(trust_env=False, timeout=60) as client:
            while not is_over.is_set():
                statuses.append(client.post(url, json={"query": "{ __typename }"}).status_code)

    threads = [threading.Thread(target=send) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
