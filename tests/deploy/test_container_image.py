"""The app runs as the Dockerfile builds and starts it: from a copy, beside its packages."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from slotlock import __version__
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.processes import AppProcess, app_environment, app_process, free_port

ROOT = Path(__file__).parent.parent.parent


def container_command(python: Path) -> list[str]:
    """Return the command of the Dockerfile, with this program as Python."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    (entrypoint,) = re.findall(r"^ENTRYPOINT (.+)$", dockerfile, re.MULTILINE)
    (arguments,) = re.findall(r"^CMD (.+)$", dockerfile, re.MULTILINE)
    program, *command = json.loads(entrypoint) + json.loads(arguments)
    assert program == "python"
    return [str(python), *command]


def create_venv(directory: Path) -> Path:
    """Create a venv with every package of a lock file; return its Python.

    What the Dockerfile copies of packages/ is installed with its command.
    """
    locked = directory / "locked"
    locked.mkdir()
    for installed in Path(sysconfig.get_path("purelib")).iterdir():
        is_ours = re.search("slotlock|strawberry_compiled", installed.name)
        if not is_ours and installed.suffix != ".pth":
            (locked / installed.name).symlink_to(installed)
    venv = directory / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site_packages,) = (venv / "lib").glob("python*/site-packages")
    (site_packages / "locked.pth").write_text(f"{locked}\n")
    python = venv / "bin" / "python"
    dockerfile = (ROOT / "Dockerfile").read_text()
    (arguments,) = re.findall(
        r"RUN /venv/bin/pip (install .* packages/.*)$", dockerfile, re.MULTILINE
    )
    shutil.copytree(ROOT / "packages", directory / "packages")
    subprocess.run([python, "-m", "pip", *arguments.split()], cwd=directory, check=True)
    return python


@pytest.fixture(scope="module")
def container(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield an app that runs as in the container image."""
    directory = tmp_path_factory.mktemp("container")
    shutil.copytree(ROOT / "slotlock", directory / "app" / "slotlock")
    command = container_command(create_venv(directory))
    settings = app_environment(servers, "container") | {"PYTHONPATH": ""}
    with app_process(settings, directory, command, cwd=directory / "app") as app:
        yield app


def test_the_app_serves_calendars_and_metrics_without_being_installed(
    container: AppProcess,
) -> None:
    with httpx.Client(base_url=container.url, trust_env=False, timeout=30) as client:
        calendar = client.get("/calendars/published.ics")
        metrics = client.get("/metrics")
    assert calendar.status_code == 200, container.log
    assert f"PRODID:-//slotlock//slotlock {__version__}//EN" in calendar.text
    assert f'version="{__version__}"' in metrics.text


@pytest.mark.parametrize("arguments", ["serve\0--workers\0002", "worker"])
def test_the_health_check_of_compose_asks_the_command_at_its_port(
    container: AppProcess, tmp_path: Path, arguments: str
) -> None:
    variable = "SLOTLOCK_PORT" if "serve" in arguments else "SLOTLOCK_QUEUE_WORKER_METRICS_PORT"
    for port, code in ((container.url.rpartition(":")[2], 0), (str(free_port()), 1)):
        assert health_check(tmp_path, arguments, {variable: port}) == code


def test_without_a_port_the_worker_of_a_container_is_healthy(tmp_path: Path) -> None:
    assert health_check(tmp_path, "worker", {}) == 0


def health_check(directory: Path, arguments: str, environment: dict[str, str]) -> int:
    """Return the exit code of the check of compose.yaml in a container with this command."""
    app = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["app"]
    kind, python, option, code = app["healthcheck"]["test"]
    assert (kind, python) == ("CMD", "python")
    (directory / "cmdline").write_text(f"python\0-m\0slotlock\0{arguments}\0")
    code = code.replace("/proc/1/cmdline", str(directory / "cmdline"))
    command = [sys.executable, option, code]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


def test_the_image_has_the_fonts_that_the_guide_for_operators_names() -> None:
    guide = (ROOT / "docs" / "guides" / "operators.md").read_text()
    fonts = set(re.findall(r"(?<!-)\bfonts-[a-z-]+", guide))
    assert fonts
    assert set(re.findall(r"\bfonts-[a-z-]+", (ROOT / "Dockerfile").read_text())) == fonts
