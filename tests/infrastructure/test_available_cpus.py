"""The CPUs of a process are those of its affinity and its control group, not of the machine."""

import math
import sys
from pathlib import Path

import pytest

from slotlock.infrastructure.available_cpus import available_cpus, cpu_quota

GROUPS = "4:memory:/other\n0::/school/web\n"


@pytest.fixture
def own_group(tmp_path: Path) -> Path:
    """Return the file that names the group `school/web` in this folder."""
    (tmp_path / "school" / "web").mkdir(parents=True)
    (tmp_path / "own").write_text(GROUPS)
    return tmp_path / "own"


@pytest.mark.parametrize(
    ("group", "content", "expected"),
    [
        ("school/web", "150000 100000\n", 1.5),
        ("school", "50000 100000\n", 0.5),
        ("", "200000 50000\n", 4),  # as in a container, whose group is the root
        ("school/web", "max 100000\n", math.inf),
        ("school/web", "", math.inf),
        ("other", "10000 100000\n", math.inf),
    ],
)
def test_the_quota_of_the_group_and_of_those_above_it_counts(
    tmp_path: Path, own_group: Path, group: str, content: str, expected: float
) -> None:
    folder = tmp_path / group
    folder.mkdir(exist_ok=True)
    (folder / "cpu.max").write_text(content)
    assert cpu_quota(tmp_path, own_group) == expected


def test_the_lowest_quota_counts(tmp_path: Path, own_group: Path) -> None:
    (tmp_path / "school" / "cpu.max").write_text("100000 100000\n")
    (tmp_path / "school" / "web" / "cpu.max").write_text("300000 100000\n")
    assert cpu_quota(tmp_path, own_group) == 1


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path, tmp_path / "missing") == math.inf


@pytest.mark.skipif(sys.platform != "linux", reason="affinity of Linux")
@pytest.mark.parametrize(
    ("affinity", "quota", "expected"), [(8, math.inf, 8), (8, 2.5, 3), (1, 4, 1), (8, 0.2, 1)]
)
def test_a_process_has_at_most_the_cpus_of_its_affinity_and_its_quota(
    monkeypatch: pytest.MonkeyPatch, affinity: int, quota: float, expected: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(affinity)))
    monkeypatch.setattr("slotlock.infrastructure.available_cpus.cpu_quota", lambda *_: quota)
    assert available_cpus() == expected
