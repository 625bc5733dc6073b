"""The history that a test of the checker writes by hand."""

from pathlib import Path

import pytest

from tests.support.bench.fault_scene import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Return a history with one empty slot."""
    scene = Scene(tmp_path)
    scene.version()
    scene.now += 5
    return scene
