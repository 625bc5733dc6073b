"""`slotlock doctor`: runs all checks and prints a line for each."""

import asyncio
from collections.abc import AsyncIterator

from slotlock.api.settings.settings import Settings, SettingsError, read_settings
from slotlock.cli.deployment import describe, with_deployment, with_running
from slotlock.cli.doctor.finding import Finding, Level, fail, ok
from slotlock.cli.doctor.machine import check_file_limit, check_settings, check_traces
from slotlock.cli.doctor.mongodb_checks import check_mongodb
from slotlock.cli.doctor.redis_checks import check_redis
from slotlock.devserver.running import find_running


def run_doctor() -> int:
    """Run all checks, and return the exit code."""
    return asyncio.run(examine())


async def examine() -> int:
    """Print a line for each check, and return 1 if any failed, else 0."""
    failures = 0
    async for finding in _find_all():
        print(finding, flush=True)
        failures += finding.level is Level.FAIL
    return 1 if failures else 0


async def _find_all() -> AsyncIterator[Finding]:
    try:
        settings = read_settings()
    except SettingsError as error:
        for line in str(error).splitlines():
            yield fail("settings", line, "correct it, then run `slotlock doctor` again")
        return
    running = None if settings.mongo_url or settings.redis_url else find_running(settings.data_dir)
    if running is not None:
        yield ok("deployment", describe(settings, running))
        settings = with_running(settings, running)
    for finding in check_settings(settings, is_development=running is not None):
        yield finding
    yield check_traces()
    yield check_file_limit(settings)
    try:
        with_deployment(settings, "mongo_url", "redis_url")
    except SettingsError as error:
        for line in str(error).splitlines():
            yield fail("settings", line, "docs/reference/settings.md has examples")
    async for finding in _check_servers(settings):
        yield finding


async def _check_servers(settings: Settings) -> AsyncIterator[Finding]:
    if settings.mongo_url:
        async for finding in check_mongodb(settings):
            yield finding
    if settings.redis_url:
        async for finding in check_redis(settings):
            yield finding
