"""Commands find a running `slotlock dev` by its data directory."""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from slotlock.cli.main import main
from slotlock.cli.simulate import find_target
from slotlock.devserver.embedded import EmbeddedServers, embedded_servers
from slotlock.devserver.running_deployment import RunningDeployment, find_running, record_running
from tests.support.apps.dev_server import run_dev_server
from tests.support.apps.fork_server import run_forked_command
from tests.support.apps.processes import app_environment, free_port
from tests.support.cli.command_line import command_errors, replace_environment, run_command


def test_commands_use_the_running_deployment_and_name_it_until_it_is_killed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with run_dev_server(tmp_path / "data") as running:
        replace_environment(monkeypatch, {"SLOTLOCK_DATA_DIR": str(running.data)})
        found = f"slotlock: using the deployment at {running.url}, "
        for arguments in (("users", "list"), ("queue", "show")):
            assert main(arguments) == 0
            assert found in capsys.readouterr().err
        # In this process, `migrate` would configure the logging of all later tests.
        code, output = run_forked_command({"SLOTLOCK_DATA_DIR": str(running.data)}, "migrate")
        assert (code, found in output) == (0, True)
        assert find_target().url == running.url
        monkeypatch.setenv("PORT", "9000")
        assert find_target().url.endswith(":9000")
        monkeypatch.delenv("PORT")
        assert main(["doctor"]) == 0
        (email, _), printed = running.sign_in(), capsys.readouterr().out
        assert "\nok       deployment " in printed
        assert f"using the deployment at {running.url}, " in printed
        assert main(["users", "list"]) == 0
        assert email in capsys.readouterr().out
        running.process.kill()
        running.process.wait()
        for command, variable in (("users list", "MONGO"), ("queue show", "REDIS")):
            (line,) = command_errors(capsys, *command.split())
            assert f"SLOTLOCK_{variable}_URL is not set" in line
            assert "make run" in line
            assert str(running.data) in line
        (line,) = command_errors(capsys, "worker")
        assert "SLOTLOCK_MONGO_URL and SLOTLOCK_REDIS_URL are not set" in line


def test_a_restore_waits_until_the_app_has_stopped_and_starts_its_mongodb_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data, file = tmp_path / "data", str(tmp_path / "backup")
    replace_environment(monkeypatch, {"SLOTLOCK_DATA_DIR": str(data)})
    (line,) = command_errors(capsys, "restore", file)
    assert line.startswith("SLOTLOCK_MONGO_URL is not set")
    with run_dev_server(data) as running:
        assert main(["backup", file]) == 0
        admin, _ = running.sign_in()
        monkeypatch.setattr(sys, "stdin", StringIO("correct horse battery\n"))
        later = ("users", "create", "later@slotlock.test", "--password-stdin")
        assert main(later) == 0
        capsys.readouterr()
        (line,) = command_errors(capsys, "restore", file, "--replace")
        assert f"serves {data} at {running.url}: stop it" in line
        assert main(["users", "list"]) == 0
        assert "later@slotlock.test" in capsys.readouterr().out
    assert main(["restore", file, "--replace", "--yes"]) == 0
    output = capsys.readouterr()
    assert "restored" in output.out
    assert "starting the MongoDB of `make run`" in output.err
    with embedded_servers(data) as servers:
        monkeypatch.setenv("SLOTLOCK_MONGO_URL", servers.mongo_url)
        listed = run_command(capsys, "users", "list")
    assert admin in listed
    assert "later@slotlock.test" not in listed


def test_explicit_settings_win_and_are_never_combined_with_a_running_deployment(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    servers: EmbeddedServers,
    tmp_path: Path,
) -> None:
    unreachable = RunningDeployment(
        "http://127.0.0.1:1", "mongodb://127.0.0.1:1/", "redis://127.0.0.1:1"
    )
    settings = {**app_environment(servers, "operators"), "SLOTLOCK_DATA_DIR": str(tmp_path)}
    replace_environment(monkeypatch, settings)
    with record_running(tmp_path, unreachable):
        run_command(capsys, "users", "list")
        run_command(capsys, "queue", "show")
        monkeypatch.delenv("SLOTLOCK_REDIS_URL")
        for command in (("queue", "show"), ("worker",)):
            (line,) = command_errors(capsys, *command)
            assert line.startswith("SLOTLOCK_REDIS_URL is not set: ")


def test_a_second_deployment_in_the_data_directory_ends_with_an_error(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    directory = tmp_path / "data"
    with run_dev_server(directory) as running:
        completed = subprocess.run(
            [sys.executable, "-m", "slotlock", "dev"],
            env={
                **app_environment(servers, "second_deployment"),
                "SLOTLOCK_DATA_DIR": str(directory),
                "PORT": str(free_port()),
            },
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert completed.returncode != 0
    assert f"{directory} is in use by another instance ({running.url})" in completed.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")
def test_a_record_counts_while_its_process_holds_it_and_only_its_owner_may_read_it(
    tmp_path: Path,
) -> None:
    deployment = RunningDeployment("http://127.0.0.1:1", "mongodb://a", "redis://b")
    assert find_running(tmp_path) is None
    with record_running(tmp_path, deployment):
        assert find_running(tmp_path) == deployment
        path = tmp_path / "running.json"
        assert os.stat(path).st_mode & 0o077 == 0
        text = path.read_text()
    assert find_running(tmp_path) is None
    path.write_text(text)  # as a killed process leaves it
    assert find_running(tmp_path) is None
