"""A slow process is not replaced; one that ends is, later each time, and the log says why."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from redis import Redis

from slotlock.cli.supervisor import HEALTH_LIMIT_S, SupervisedProcess
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import PausePoint, app_variant
from tests.support.apps.processes import AppProcess, app_environment, is_http_ready
from tests.support.cli.supervised_sleeps import SupervisedSleeps
from tests.support.polling import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")


@pytest.fixture
def environment(servers: EmbeddedServers) -> dict[str, str]:
    """Return the settings of an app with two server processes."""
    return app_environment(servers, "supervised") | {"VARIANT_COMMAND": "serve --workers 2"}


def server_pids(app: AppProcess) -> list[int]:
    """Return the server processes in the order of their starts."""
    path = Path(f"/proc/{app.process.pid}/task/{app.process.pid}/children")
    return [int(pid) for pid in path.read_text().split()]


def test_only_beats_of_its_event_loop_show_that_a_process_is_well() -> None:
    pipe, beating = os.pipe()
    os.set_blocking(pipe, False)
    pid = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "1000")  # noqa: S606
    process = SupervisedProcess(pid, pipe, end_limit_s=1, early_exits=0)
    try:
        for _ in range(2):
            os.write(beating, b".")
            assert process.check(HEALTH_LIMIT_S - 1) is None
        problem = process.check(HEALTH_LIMIT_S)
        assert problem is not None
        assert problem[0] == "unresponsive"
    finally:
        process.kill()
        process.close()
        os.close(beating)


@pytest.mark.parametrize("refused", ["fork", "pipe"])
def test_if_the_system_refuses_a_process_the_others_serve_on_and_it_starts_later(
    refused: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = SupervisedSleeps(monkeypatch, tmp_path)

    def steps() -> Iterator[int | None]:
        scene.beat()
        yield None
        first, killed = scene.pids
        files = scene.open_files
        scene.refused = refused
        scene.kill(killed)
        yield signal.SIGHUP  # a restart waits as well
        while caplog.text.count("no server process can start") < 3:
            yield None
            assert scene.pids == [first]
        waits_since, scene.refused = scene.now, ""
        while len(scene.pids) < 2:
            yield None
        assert 3.5 <= scene.now - waits_since <= 4.5
        yield from _beat_for(scene, 8)
        assert len(scene.pids) == 2
        assert first not in scene.pids
        assert scene.open_files == files

    scene.run(steps())
    assert all(f"the next attempt is in {pause_s} s" in caplog.text for pause_s in (1, 2, 4))


@pytest.mark.parametrize("killed", ["replaced", "replacing", "other", "replaced and other"])
def test_after_a_restart_in_which_a_process_was_killed_there_are_as_many_as_before(
    killed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scene = SupervisedSleeps(monkeypatch, tmp_path)

    def steps() -> Iterator[int | None]:
        scene.beat()
        yield None
        replaced, other = scene.pids
        yield signal.SIGHUP
        yield None
        replacing = scene.pids[-1]
        pids = {"replaced": replaced, "replacing": replacing, "other": other}
        for name in killed.split(" and "):
            scene.kill(pids[name])
        yield from _beat_for(scene, 12)
        assert len(scene.pids) == 2
        is_over = killed == "replacing"
        assert scene.pids == [replaced, other] if is_over else other not in scene.pids

    scene.run(steps())


def _beat_for(scene: SupervisedSleeps, steps: int) -> Iterator[None]:
    for _ in range(steps):
        scene.beat()
        yield None


def test_a_process_that_starts_slowly_is_not_replaced_but_one_that_does_not_respond_is(
    environment: dict[str, str], log_dir: Path
) -> None:
    with Redis.from_url(environment["SLOTLOCK_REDIS_URL"]) as redis:
        pause_point = PausePoint(redis)
        with app_variant(
            environment,
            log_dir,
            without_guards="short-health-limit",
            pause_at="start",
            pause_point=pause_point,
        ) as app:
            pause_point.wait_until_reached()
            first, slow = server_pids(app)
            wait_until(lambda: f"server process {first} serves" in app.log, "one is known to serve")
            os.kill(first, signal.SIGSTOP)
            expected = f"server process {first} did not respond for 5 s, and was killed"
            wait_until(lambda: expected in app.log, "the stopped process is replaced")
            # The slow one started before and has not served yet.
            assert slow in server_pids(app)
            pause_point.resume()
            pause_point.resume()  # the replacement starts slowly, too
            wait_until(lambda: f"server process {slow} serves" in app.log, "the slow one serves")
            assert app.log.count(f"server process {slow} ") == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("later-starts-fail", "ended with exit code 3"),
        ("short-start-limit", "did not serve within 1 s, and was killed"),
    ],
)
def test_a_process_that_never_serves_is_replaced_after_growing_pauses_while_others_serve(
    environment: dict[str, str], log_dir: Path, fault: str, reason: str
) -> None:
    with (
        Redis.from_url(environment["SLOTLOCK_REDIS_URL"]) as redis,
        app_variant(
            environment,
            log_dir,
            without_guards=f"short-pauses {fault}",
            pause_at="start" if fault == "short-start-limit" else "",
            pause_point=PausePoint(redis),
        ) as app,
    ):
        for pause_s in ("0.1", "0.2", "0.4"):
            line = f"{reason}; another starts in {pause_s} s"
            wait_until(lambda line=line: line in app.log, line)  # type: ignore[misc]
        assert is_http_ready(app)


def test_a_failed_restart_leaves_the_processes_as_they_were(
    environment: dict[str, str], log_dir: Path
) -> None:
    with app_variant(environment, log_dir, without_guards="starts-after-two-fail") as app:
        processes = server_pids(app)
        wait_until(lambda: app.log.count(" serves\n") == 2, "both processes serve")
        app.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "older processes serve on" in app.log, "the restart ends")
        assert server_pids(app) == processes
        assert is_http_ready(app)


def test_a_restart_replaces_every_process_and_a_stop_ends_one_that_starts(
    environment: dict[str, str], log_dir: Path
) -> None:
    with Redis.from_url(environment["SLOTLOCK_REDIS_URL"]) as redis:
        pause_point = PausePoint(redis)
        with app_variant(environment, log_dir, pause_at="start", pause_point=pause_point) as app:
            pause_point.wait_until_reached()
            pause_point.resume()
            wait_until(lambda: app.log.count(" serves\n") == 2, "both processes serve")
            first, second = server_pids(app)
            app.process.send_signal(signal.SIGHUP)
            pause_point.wait_until_reached()
            assert {first, second} < {*server_pids(app)}
            pause_point.resume()
            pause_point.wait_until_reached()
            assert first not in server_pids(app)
            pause_point.resume()
            wait_until(lambda: second not in server_pids(app), "both are replaced")
            assert len(server_pids(app)) == 2
            app.process.send_signal(signal.SIGHUP)
            pause_point.wait_until_reached()
            assert app.stop() == 0
            assert "another starts" not in app.log


def test_ctrl_c_is_for_the_first_process_which_stops_the_others(
    environment: dict[str, str], log_dir: Path
) -> None:
    with app_variant(environment, log_dir) as app:
        wait_until(lambda: app.log.count(" serves\n") == 2, "both processes serve")
        for pid in server_pids(app):
            os.kill(pid, signal.SIGINT)
            status = Path(f"/proc/{pid}/status").read_text()
            (pending,) = (line for line in status.splitlines() if line.startswith("ShdPnd:"))
            assert int(pending.split()[1], 16) & 1 << signal.SIGINT - 1
        app.process.send_signal(signal.SIGINT)
        assert app.process.wait(60) == 0
        assert "another starts" not in app.log


def test_a_process_is_replaced_if_its_event_loop_hangs_although_its_threads_respond(
    environment: dict[str, str], log_dir: Path
) -> None:
    guards = "short-health-limit hanging-on-signal"
    with app_variant(environment, log_dir, without_guards=guards) as app:
        wait_until(lambda: app.log.count(" serves\n") == 2, "both processes serve")
        hanging, _ = server_pids(app)
        os.kill(hanging, signal.SIGUSR1)
        expected = f"server process {hanging} did not respond for 5 s, and was killed"
        wait_until(lambda: expected in app.log, "the process is replaced")


def test_processes_are_replaced_during_a_restart_which_kills_one_that_does_not_end(
    environment: dict[str, str], log_dir: Path
) -> None:
    environment["SLOTLOCK_GRACEFUL_STOP_S"] = "1"
    with Redis.from_url(environment["SLOTLOCK_REDIS_URL"]) as redis:
        pause_point = PausePoint(redis)
        with app_variant(
            environment,
            log_dir,
            without_guards="hanging-on-signal short-end-limit",
            pause_at="start",
            pause_point=pause_point,
        ) as app:
            pause_point.wait_until_reached()
            pause_point.resume()
            wait_until(lambda: app.log.count(" serves\n") == 2, "both processes serve")
            hanging, killed = server_pids(app)
            os.kill(hanging, signal.SIGUSR1)
            app.process.send_signal(signal.SIGHUP)
            pause_point.wait_until_reached()
            os.kill(killed, signal.SIGKILL)
            expected = f"server process {killed} was killed by SIGKILL; another starts"
            wait_until(lambda: expected in app.log, "it is replaced while the other one starts")
            pause_point.resume()
            pause_point.wait_until_reached()
            pause_point.resume()
            expected = f"server process {hanging} did not end within 2 s, and was killed"
            wait_until(lambda: expected in app.log, "the restart goes on")
            wait_until(lambda: app.log.count(" serves\n") == 4, "two other processes serve")
            assert app.stop() == 0


def test_a_replaced_process_executes_the_documents_that_the_first_one_has_read(
    environment: dict[str, str], log_dir: Path, tmp_path: Path
) -> None:
    documents = tmp_path / "documents.json"
    documents.write_text(json.dumps({"name": "{ site { name } }"}))
    environment["SLOTLOCK_OPERATIONS"] = str(documents)
    with app_variant(environment, log_dir) as app:
        wait_until(lambda: app.log.count(" serves\n") == 2, "both processes serve")
        documents.write_text(json.dumps({"type": "{ __typename }"}))
        for pid in server_pids(app):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: app.log.count(" serves\n") == 4, "both are replaced")
        response = httpx.post(f"{app.url}/graphql", json={"documentId": "name"}, trust_env=False)
        assert response.json()["data"] == {"site": {"name": "slotlock"}}
