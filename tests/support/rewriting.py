"""Rewrites the asserts of all test files once, before each worker would do it again."""

from pathlib import Path

import pytest
from _pytest.assertion import AssertionState, rewrite

TESTS = Path(__file__).parents[1]


def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Store the rewritten files, as an import of each would. It takes 20 ms a file."""
    for path in TESTS.rglob("test_*.py"):
        if config.hook.pytest_ignore_collect(collection_path=path, config=config):
            continue
        cached = rewrite.get_cache_dir(path) / (path.name[:-3] + rewrite.PYC_TAIL)
        if rewrite._read_pyc(path, cached) is None:
            status, code = rewrite._rewrite_test(path, config)
            if rewrite.try_makedirs(cached.parent):
                rewrite._write_pyc(AssertionState(config, "rewrite"), code, status, cached)
