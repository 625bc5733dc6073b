"""Finds and checks the servers of a command: those of the settings, or of a running `dev`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pymongo import AsyncMongoClient

from slotlock.api.settings.settings import Settings, SettingsError, env_name, read_settings, require
from slotlock.devserver.embedded import embedded_servers
from slotlock.devserver.running_deployment import RunningDeployment, find_running
from slotlock.infrastructure.mongo.client import (
    OPERATION_TIMEOUT_MS,
    Document,
    supports_transactions,
)

FIRST_ADMIN = "create one with `slotlock users create you@example.org --role admin`"


class CommandError(Exception):
    """A command cannot do its work; the text is the reason, in one line or several."""


def settings_with_mongodb() -> Settings:
    """Read the settings of a command that works on MongoDB; raises SettingsError."""
    return with_deployment(read_settings(unchecked=("redis_url",)), "mongo_url")


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
    announce(describe(settings, running))
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
    announce(f"starting the MongoDB of `make run`, with its data in {data_dir}")
    with embedded_servers(data_dir, mongod=settings.mongod, valkey=settings.valkey) as servers:
        yield replace(settings, mongo_url=servers.mongo_url)


def announce(text: str) -> None:
    """Print on stderr what a command does."""
    print(f"slotlock: {text}", file=sys.stderr, flush=True)


def with_running(settings: Settings, running: RunningDeployment) -> Settings:
    """Return the settings with the addresses of a running deployment."""
    return replace(settings, mongo_url=running.mongo_url, redis_url=running.redis_url)


def find_address(settings: Settings) -> str | None:
    """Return the address at which clients reach the server: that of the settings, or of `dev`."""
    if settings.public_url or settings.given & {"mongo_url", "redis_url"}:
        return settings.public_url
    running = find_running(settings.data_dir)
    return running.address if running else None


def describe(settings: Settings, running: RunningDeployment) -> str:
    """Return which deployment was found, without its secrets."""
    return f"using the deployment at {running.address}, with its data in {settings.data_dir}"


def confirm(loss: str, answer: str) -> None:
    """Ask to type an answer before something is lost for good.

    Only a terminal is asked; a script has to know what it does.
    Raises: CommandError without the answer.
    """
    if not sys.stdin.isatty():
        raise CommandError(f"{loss}. Nothing was changed; --yes confirms it")
    print(f"{loss}. Type {answer} to continue: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != answer:
        raise CommandError("not confirmed; nothing was changed. --yes does not ask")


async def check_mongodb(settings: Settings) -> None:
    """Check that MongoDB responds, and has transactions. Raises CommandError and PyMongoError."""
    # The client of `connect` would reject a server that has not joined a replica set.
    url, timeout_ms = settings.mongo_url or "", OPERATION_TIMEOUT_MS
    async with AsyncMongoClient[Document](url, timeoutMS=timeout_ms) as client:
        hello = await client.admin.command("hello")
    if not supports_transactions(hello):
        raise CommandError(
            "MongoDB is not a replica set, so it has no transactions; "
            "start it with --replSet rs0 and run rs.initiate() once"
        )
