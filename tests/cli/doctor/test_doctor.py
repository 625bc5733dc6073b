"""`slotlock doctor` names what is wrong with a deployment, and what to do about it."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from time import time

import pytest
from bson import ObjectId
from pymongo import MongoClient
from redis import Redis

from slotlock import __version__
from slotlock.cli.doctor.finding import Level, check_clock
from slotlock.cli.main import main
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import Document
from tests.support.apps.processes import app_environment, database_url, free_port
from tests.support.apps.redis_topologies import RedisNode, start_node
from tests.support.apps.restartable_servers import RestartableServer
from tests.support.cli.command_line import command_errors, replace_environment
from tests.support.sign_on.lying_provider import lying_provider

DATABASE = "doctor"


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch, servers: EmbeddedServers) -> pytest.MonkeyPatch:
    """Set the settings of an operator and remove all others."""
    settings = app_environment(servers, DATABASE)
    del settings["SLOTLOCK_RATE_LIMITS"]
    replace_environment(monkeypatch, settings)
    return monkeypatch


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisNode]:
    """Yield a Valkey whose configuration the tests may change."""
    with start_node(tmp_path_factory.mktemp("valkey")) as node:
        yield node


@pytest.fixture
def own_redis(environ: pytest.MonkeyPatch, servers: EmbeddedServers) -> Iterator[Redis]:
    """Return a client of the Redis of the tests."""
    with Redis.from_url(servers.redis_url) as client:
        yield client


def examine(capsys: pytest.CaptureFixture[str], exit_code: int = 0) -> dict[str, str]:
    """Run the command and return its findings: `level text`, by check."""
    assert main(["doctor"]) == exit_code
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["LEVEL", "CHECK", "FOUND,"]
    return {line[9:31].strip(): f"{line[:9].strip()} {line[32:]}" for line in lines}


def test_a_healthy_deployment_has_no_failure(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch
) -> None:
    assert main(["migrate"]) == 0  # writes to the log, too
    capsys.readouterr()
    findings = examine(capsys)
    assert {text.split()[0] for text in findings.values()} <= {"ok", "warning"}
    assert findings["MongoDB indexes"].startswith("ok all ")
    assert findings["slotlock"] == f"ok {__version__}, with the settings of the environment"
    assert set(findings) == {
        "slotlock", "settings", "traces", "open files", "MongoDB", "MongoDB clock",
        "MongoDB topology",
        "MongoDB members", "MongoDB transactions", "MongoDB majority", "MongoDB indexes",
        "MongoDB documents", "addresses", "admin", "Redis", "Redis clock", "Redis eviction",
        "Redis memory", "Redis persistence", "outbox reader", "outbox entries", "draws",
        "webhooks", "site",
    }  # fmt: skip


def test_a_deployment_without_an_admin_is_a_warning_that_says_how_to_create_one(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    environ.setenv("SLOTLOCK_MONGO_URL", database_url(servers, "without_admin"))
    assert main(["migrate"]) == 0
    capsys.readouterr()
    assert "the next start creates admin@slotlock.test" in examine(capsys)["admin"]
    for name in ("SLOTLOCK_ADMIN_EMAIL", "SLOTLOCK_ADMIN_PASSWORD"):
        environ.delenv(name)
    text = examine(capsys)["admin"]
    assert text.startswith("warning no account is an admin")
    assert "`slotlock users create you@example.org --role admin`" in text
    users = {"email": "ada@slotlock.test", "role": "admin", "banned": None}
    with MongoClient[Document](database_url(servers, "without_admin")) as client:
        client.get_default_database().users.insert_one(users)
        assert examine(capsys)["admin"] == "ok there is one"


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [
        ("SLOTLOCK_SECRET_KEY", "", "FAIL `serve` has no key"),
        ("SLOTLOCK_ADMIN_PASSWORD", "", "FAIL the admin has no password"),
        ("SLOTLOCK_RATE_LIMITS", "off", "warning rates are not limited"),
        ("SLOTLOCK_QUEUE_LENGTH", "many", "FAIL SLOTLOCK_QUEUE_LENGTH: "),
        ("SLOTLOCK_REDIS_URL", "", "FAIL SLOTLOCK_REDIS_URL is not set"),
    ],
)
def test_each_setting_that_is_wrong_is_reported(
    capsys: pytest.CaptureFixture[str],
    environ: pytest.MonkeyPatch,
    variable: str,
    value: str,
    text: str,
) -> None:
    environ.setenv(variable, value)
    assert text in examine(capsys, exit_code=int(text.startswith("FAIL")))["settings"]


def test_an_endpoint_for_traces_without_the_packages_fails_as_serve_and_worker_do(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    environ.setitem(sys.modules, "opentelemetry.sdk", None)  # as if it were not installed
    text = examine(capsys, exit_code=1)["traces"]
    assert text.startswith("FAIL OTEL_EXPORTER_OTLP_ENDPOINT or ")
    assert "pip install --require-hashes -r requirements-serve.lock" in text
    for command in ("serve", "worker"):
        (line,) = command_errors(capsys, command)
        assert line in text


class TracesReceiver(BaseHTTPRequestHandler):
    """Takes traces at the path of OpenTelemetry only."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


def test_the_endpoint_for_traces_is_tried(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch
) -> None:
    assert examine(capsys)["traces"] == "ok off"
    with HTTPServer(("127.0.0.1", 0), TracesReceiver) as receiver:
        address = f"http://127.0.0.1:{receiver.server_port}"
        thread = Thread(target=receiver.serve_forever, args=(0.01,))
        thread.start()
        try:
            environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
            assert examine(capsys)["traces"] == "ok on, and the endpoint takes them"
            environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{address}/elsewhere")
            text = examine(capsys)["traces"]
            assert text.startswith("warning the endpoint took no traces: ")
            assert "404" in text
        finally:
            receiver.shutdown()
            thread.join()
    environ.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    output = examine(capsys)["traces"]
    assert output.startswith("warning the endpoint took no traces: ")
    assert "refused" in output


def test_indexes_that_are_missing_or_different_and_newer_documents_are_reported(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    url = database_url(servers, "doctor_indexes")
    environ.setenv("SLOTLOCK_MONGO_URL", url)
    assert "the first start creates them" in examine(capsys)["MongoDB indexes"]
    assert main(["migrate"]) == 0  # writes to the log, too
    capsys.readouterr()
    with closing(MongoClient[Document](url)) as client:
        database = client.get_default_database()
        index = next(name for name in database["slots"].index_information() if name != "_id_")
        database["slots"].drop_index(index)
        found = examine(capsys)["MongoDB indexes"]
        assert found.startswith(f"warning missing or incomplete: slots.{index}")
        assert "slotlock migrate" in found
        database["users"].drop_index("email")
        assert "users.email" in examine(capsys, exit_code=1)["MongoDB indexes"]
        database["users"].create_index("email", name="email")  # not unique
        assert "users.email" in examine(capsys, exit_code=1)["MongoDB indexes"]
        database["teams"].insert_one({"schemaVersion": 99})
        database["users"].drop_index("email")
        assert "teams has version 99" in examine(capsys, exit_code=1)["MongoDB documents"]
        client.drop_database(database)


def test_what_workers_cannot_read_or_go_on_with_is_a_warning_that_names_it(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    url, now = database_url(servers, "doctor_workers"), datetime.now(UTC)
    environ.setenv("SLOTLOCK_MONGO_URL", url)
    with closing(MongoClient[Document](url)) as client:
        database = client.get_default_database()
        times = [now, now - timedelta(days=8)]
        unread = [{"what": f"slot_{at.day}", "reason": "KeyError()", "at": at} for at in times]
        database["outbox_checkpoints"].insert_one({"_id": "mail", "unread": unread})
        note, seed = {"note": "cannot be read: KeyError()"}, {"serverSeed": "secret"}
        database["outbox"].insert_many(
            [{"_id": "now", "dueAt": now, **note}, {"_id": "sent", **note}, {"dueAt": now}]
        )
        draws = [
            {"_id": minutes, "campaign": 7, "dueAt": now - timedelta(minutes=minutes), **seed}
            for minutes in (0, 11, 12, 13, 14)
        ]
        later = {"campaign": 9, "dueAt": now + timedelta(hours=1), "problem": "TypeError", **seed}
        failing = [{"_id": f"f{count}", **later, "failures": count} for count in (2, 3)]
        failing.append({"_id": "f4", "campaign": 9})
        database["draws"].insert_many([*draws, {"campaign": 8, **seed}])
        found = examine(capsys, exit_code=1)  # there are no indexes
        database["draws"].delete_many({})
        database["draws"].insert_many(failing)
        found_failing = examine(capsys, exit_code=1)
        client.drop_database(database)
    assert found["outbox reader"].startswith(
        f"warning it could not read slot_{now.day} (KeyError());"
    )
    assert found["outbox entries"].startswith("warning now (cannot be read: KeyError());")
    names = ", ".join(f"draw {minutes} of campaign_7" for minutes in (14, 13, 12))
    assert found["draws"].startswith(f"warning {names} and 1 more: no worker could go on;")
    named = ("draw f4 of campaign_9 (older format)", "draw f3 of campaign_9 (TypeError)")
    assert found_failing["draws"].startswith(f"warning {', '.join(named)}: no worker could go on;")


def test_webhooks_that_cannot_be_read_or_whose_creators_may_not_create_them_are_named(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    url, now = database_url(servers, "doctor_webhooks"), datetime.now(UTC)
    environ.setenv("SLOTLOCK_MONGO_URL", url)
    roles = ("admin", "organizer", "member", "admin", "admin")
    users: list[Document] = [
        {"_id": ObjectId(), "name": role, "email": role, "role": role, "createdAt": now}
        for role in roles
    ]
    users[3]["banned"] = True
    users[4]["erasedAt"] = now
    webhooks: list[Document] = [
        {
            "_id": ObjectId(),
            "createdBy": user["_id"],
            "url": "https://receiver.test/",
            "createdAt": now,
            "enabledAt": now,
            "events": [],
            "secrets": [],
        }
        for user in (*users, users[1], users[2])
    ]
    webhooks[5]["campaign"] = ObjectId()  # organizers create those of campaigns
    webhooks[6]["disabledAt"] = now
    with closing(MongoClient[Document](url)) as client:
        database = client.get_default_database()
        database["users"].insert_many(users)
        database["webhooks"].insert_many(webhooks)
        left = examine(capsys, exit_code=1)["webhooks"]  # there are no indexes
        database["webhooks"].update_one({"_id": webhooks[0]["_id"]}, {"$unset": {"url": ""}})
        unreadable = examine(capsys, exit_code=1)["webhooks"]
        client.drop_database(database)
    names = [f"webhook_{each['_id']} of user_{each['createdBy']}" for each in webhooks[1:4]]
    assert left.startswith(f"warning {', '.join(names)} and 1 more: their creators may not")
    assert unreadable.startswith(f"warning webhook_{webhooks[0]['_id']} (KeyError('url'))")


def test_a_standalone_mongod_and_one_that_does_not_respond_fail_with_the_remedy(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = RestartableServer(tmp_path / "mongod", "mongod")
    address = f"ada:hush@127.0.0.1:{server.port}"
    try:
        server.launch()  # belongs to no replica set before it is initiated
        url = f"mongodb://127.0.0.1:{server.port}/?directConnection=true"
        with closing(MongoClient[Document](url)) as client:
            client.admin.command("ping")  # waits for the start, which may take seconds
        environ.setenv("SLOTLOCK_MONGO_URL", url)
        assert "--replSet" in examine(capsys, exit_code=1)["MongoDB topology"]
        server.wait_until_writable()
        environ.setenv("SLOTLOCK_MONGO_URL", server.url)
        findings = examine(capsys)
        assert "transactionLifetimeLimitSeconds=5" in findings["MongoDB transactions"]
        server.kill()
        environ.setenv("SLOTLOCK_MONGO_URL", f"mongodb://{address}/?directConnection=true")
        text = examine(capsys, exit_code=1)["MongoDB"]
        assert text.startswith("FAIL")
        assert "hush" not in text
    finally:
        server.kill()


def test_a_redis_that_evicts_or_is_full_fails_and_its_password_is_not_printed(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, valkey: RedisNode
) -> None:
    environ.setenv("SLOTLOCK_REDIS_URL", f"redis://:hush@127.0.0.1:{valkey.port}/0")
    with Redis(port=valkey.port) as client:
        client.config_set("requirepass", "hush")
        client.config_set("maxmemory", "50mb")
        findings = examine(capsys)
        assert findings["Redis memory"].startswith("warning")
        assert "full admission queue needs" in findings["Redis memory"]
        client.config_set("maxmemory-policy", "allkeys-lru")
        findings = examine(capsys, exit_code=1)
        assert findings["Redis eviction"].startswith("FAIL maxmemory-policy is allkeys-lru")
        assert "noeviction" in findings["Redis eviction"]
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", str(int(client.info("memory")["used_memory"] * 1.1)))
        findings = examine(capsys, exit_code=1)
        assert findings["Redis memory"].startswith("FAIL")
        client.config_set("maxmemory", "0")
    environ.setenv("SLOTLOCK_REDIS_URL", f"redis://:hash@127.0.0.1:{valkey.port}/0")
    text = examine(capsys, exit_code=1)["Redis"]
    assert text.startswith("FAIL")
    assert "hash" not in text
    assert "hush" not in text


def test_a_redis_that_does_not_respond_fails(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch
) -> None:
    environ.setenv("SLOTLOCK_REDIS_URL", f"redis://127.0.0.1:{free_port()}/0")
    assert examine(capsys, exit_code=1)["Redis"].startswith("FAIL")
    environ.setenv("SLOTLOCK_REDIS_URL", f"redis+cluster://127.0.0.1:{free_port()}")
    assert examine(capsys, exit_code=1)["Redis"].startswith("FAIL")


@pytest.mark.parametrize("ahead_s", [-5.0, 5.0])
def test_a_clock_that_differs_by_more_than_the_round_trip_and_the_bound_is_reported(
    own_redis: Redis, ahead_s: float
) -> None:
    sent_s = time() + ahead_s
    seconds, microseconds = own_redis.time()
    received_s = time() + ahead_s
    server_s = seconds + microseconds / 1e6
    found = check_clock("Redis clock", sent_s, server_s, received_s, max_skew_s=2.0)
    assert found.level is Level.WARNING
    assert ("is +" if ahead_s > 0 else "is -") in found.found
    allowed = check_clock("Redis clock", sent_s, server_s, received_s, max_skew_s=6.0)
    assert allowed.level is Level.OK
    slow = check_clock("Redis clock", server_s - 9, server_s, server_s + 9, max_skew_s=0.1)
    assert slow.level is Level.OK


def test_a_limit_on_open_files_below_the_connections_is_reported(
    environ: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    command = (
        "import resource, sys; from slotlock.cli.main import main; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard_limit})); "
        "sys.exit(main(['doctor']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True
    )
    (line,) = (line for line in ended.stdout.splitlines() if "open files" in line)
    assert line.startswith("warning")
    assert "256, but" in line
    assert "ulimit -n" in line


def test_the_providers_of_sign_ins_are_checked_with_their_keys_and_clocks(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "providers.toml"
    environ.setenv("SLOTLOCK_PROVIDERS", str(file))
    environ.setenv("SLOTLOCK_PUBLIC_URL", "https://slots.example.org")
    with lying_provider() as provider:
        fields = {"id": "school", "name": "School", "issuer": provider.issuer, "client_id": "a"}
        lines = [f"{name} = {value!r}" for name, value in fields.items()]
        file.write_text("\n".join(["[[provider]]", *lines]))
        findings = examine(capsys)
        assert findings["sign-on school"].startswith("ok 1 keys")
        assert "https://slots.example.org/board" in findings["sign-on school pages"]
        assert findings["sign-on school clock"].startswith("ok ")
        provider.published = []
        assert "no key for RS256" in examine(capsys, 1)["sign-on school"]
        provider.metadata = {"issuer": "https://elsewhere.example"}
        assert "its issuer is" in examine(capsys, 1)["sign-on school"]
    findings = examine(capsys, 1)
    assert findings["sign-on school"].startswith("FAIL")
    assert "https://slots.example.org/board" in findings["sign-on school pages"]
    environ.delenv("SLOTLOCK_PUBLIC_URL")
    assert examine(capsys, 1)["sign-on school pages"].startswith("FAIL the provider has no address")
