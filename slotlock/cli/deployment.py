"""Finds the servers that a command works on: those of the settings, or of a running `dev`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from slotlock.api.settings.settings import Settings, SettingsError, env_name, read_settings, require
from slotlock.cli.backends import CommandError
from slotlock.devserver.embedded import embedded_servers
from slotlock.devserver.running import RunningDeployment, find_running


def settings_with_mongodb() -> Settings:
    """Read the settings of a command that works on MongoDB; raises SettingsError."""
    return with_deployment(read_settings(), "mongo_url")


def settings_with_redis() -> Settings:
    """Read the settings of a command that works on Redis; raises SettingsError."""
    return with_deployment(read_settings(), "redis_url")


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
    _announce(describe(settings, running))
    return with_running(settings, running)


@contextmanager
def stopped_deployment(settings: Settings) -> Iterator[Settings]:
    """Yield settings with the `mongo_url` of a database that no app of `slotlock dev` serves.

    If neither address is set, the MongoDB of a stopped `slotlock dev` runs during the block.

    Raises:
        CommandError: `slotlock dev` runs, whose app would serve a database that changes under it.
        SettingsError: the address is missing, and there is no data of `slotlock dev`.
        ServerStartError: its MongoDB cannot run.
    """
    if settings.mongo_url or settings.redis_url:
        require(settings, "mongo_url")
        yield settings
        return
    running, data_dir = find_running(settings.data_dir), settings.data_dir
    if running is not None:
        raise CommandError(
            f"`make run` (`slotlock dev`) serves {data_dir} at {running.address}: stop it, then "
            "repeat the command, which starts its MongoDB by itself"
        )
    if not data_dir.exists():
        variable = env_name("mongo_url")
        raise SettingsError(f"{variable} is not set, and there is no {data_dir} of a `make run`")
    _announce(f"starting the MongoDB of `make run`, with its data in {data_dir}")
    with embedded_servers(data_dir, mongod=settings.mongod, valkey=settings.valkey) as servers:
        yield settings.model_copy(update={"mongo_url": servers.mongo_url})


def _announce(text: str) -> None:
    print(f"slotlock: {text}", file=sys.stderr, flush=True)


def with_running(settings: Settings, running: RunningDeployment) -> Settings:
    """Return the settings with the addresses of a running deployment."""
    found = {"mongo_url": running.mongo_url, "redis_url": running.redis_url}
    return settings.model_copy(update=found)


def describe(settings: Settings, running: RunningDeployment) -> str:
    """Return which deployment was found, without its secrets."""
    return f"using the deployment at {running.address}, with its data in {settings.data_dir}"
