"""Finds the servers that a command works on: those of the settings, or of a running `dev`."""

import sys

from slotlock.api.settings.settings import Settings, SettingsError, env_name, require
from slotlock.devserver.running import RunningDeployment, find_running


def with_deployment(settings: Settings, *names: str) -> Settings:
    """Return settings in which these names, `mongo_url` and `redis_url`, are set.

    Only if neither address is set, those of `slotlock dev` apply: a command must not combine the
    servers of two deployments.

    Raises:
        SettingsError: at least one is missing.
    """
    if settings.mongo_url or settings.redis_url:
        require(settings, *names)
        return settings
    running = find_running(settings.data_dir)
    if running is None:
        variables = " and ".join(map(env_name, names))
        verb = "is" if len(names) == 1 else "are"
        raise SettingsError(
            f"{variables} {verb} not set, and no `make run` (`slotlock dev`) is running with its "
            f"data in {settings.data_dir}: set {variables}, or start one"
        )
    print(f"slotlock: {describe(settings, running)}", file=sys.stderr, flush=True)
    return with_running(settings, running)


def with_running(settings: Settings, running: RunningDeployment) -> Settings:
    """Return the settings with the addresses of a running deployment."""
    found = {"mongo_url": running.mongo_url, "redis_url": running.redis_url}
    return settings.model_copy(update=found)


def describe(settings: Settings, running: RunningDeployment) -> str:
    """Return which deployment was found, without its secrets."""
    return f"using the deployment at {running.address}, with its data in {settings.data_dir}"
