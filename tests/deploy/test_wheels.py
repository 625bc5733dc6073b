"""Two wheels of `make dist`, in an environment without the clone, are all of slotlock."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.dev_server import run_dev_server
from tests.support.apps.processes import app_environment, app_process

ROOT = Path(__file__).parents[2]


def run(*command: object) -> str:
    """Run a command that needs no network, and return what it prints."""
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheels into an empty environment, and return its Python.

    What the lock files install comes from the environment of the tests, but not the clone: only
    its own site-packages could name it, and a folder in a .pth file has none.
    """
    folder = tmp_path_factory.mktemp("dist")
    run("make", "dist", f"DIST={folder / 'dist'}")
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    python = venv / "bin" / "python"
    wheels = sorted((folder / "dist").glob("*.whl"))
    assert len(wheels) == 2
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", *wheels)
    (site_packages,) = venv.glob("lib/*/site-packages")
    (site_packages / "locked.pth").write_text(sysconfig.get_path("purelib"))
    return python


def test_the_wheels_have_all_that_the_clone_has(installed: Path) -> None:
    program = "import slotlock, strawberry_compiled as s; print(slotlock.__file__, s.__file__)"
    folders = run(installed, "-I", "-c", program).split()
    assert all(folder.startswith(str(installed.parents[1])) for folder in folders)
    packed = {
        path.relative_to(Path(folders[0]).parent) for path in Path(folders[0]).parent.rglob("*")
    }
    tracked = run("git", "ls-files", "slotlock").split()
    assert {Path(name).relative_to("slotlock") for name in tracked} - packed == set()


def test_an_installed_slotlock_develops_and_serves(
    installed: Path, tmp_path: Path, servers: EmbeddedServers
) -> None:
    command = installed.parent / "slotlock"
    with run_dev_server(tmp_path / "dev", command=(str(command), "dev")) as running:
        page = httpx.get(f"{running.url}/board", trust_env=False, timeout=30)
        assert page.status_code == 200
        body = {"query": "{ site { name } }"}
        response = httpx.post(f"{running.url}/graphql", json=body, trust_env=False, timeout=30)
        assert response.json() == {"data": {"site": {"name": "slotlock"}}}
    settings = app_environment(servers, "wheels")
    with app_process(settings, tmp_path, (str(command), "serve"), cwd=tmp_path) as app:
        response = httpx.post(f"{app.url}/graphql", json=body, trust_env=False, timeout=30)
        assert response.json() == {"data": {"site": {"name": "slotlock"}}}
