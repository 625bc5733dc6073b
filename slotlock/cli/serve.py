"""`slotlock serve`: the app for production, in one server process or in several."""

import asyncio
import logging
import sys

from slotlock.api.app import build_app
from slotlock.api.app_state import read_files
from slotlock.api.first_admin import check_admin_password
from slotlock.api.listener import listen
from slotlock.api.server.serve import serve, uvicorn_config
from slotlock.api.settings.settings import Settings, read_settings, require
from slotlock.api.telemetry.traces import check_tracing
from slotlock.cli.deployment import FIRST_ADMIN, CommandError, check_mongodb
from slotlock.infrastructure.mongo.client import open_database
from slotlock.infrastructure.mongo.users.account_admin_writer import has_admin

log = logging.getLogger("slotlock")


def serve_alone() -> int:
    """Serve from this process until a signal, and return the exit code."""
    settings = _checked_settings()
    listener, address = listen(settings)
    with listener:
        app = build_app(settings, development=False)
        config = uvicorn_config(settings, app)
        started = serve(config, listener, lambda: print(f"listening on {address}"))
    return _exit_code(started=started)


def serve_together(process_count: int) -> int:
    """Serve from several processes until a signal, and return the exit code."""
    if sys.platform != "linux":  # libraries of other systems do not survive a fork
        raise CommandError("--workers needs Linux; here, slotlock serves from one process")
    from slotlock.cli.supervisor import serve_from_processes

    settings = _checked_settings()
    listener, address = listen(settings)
    with listener:
        print(f"listening on {address} with {process_count} server processes", flush=True)
        app = build_app(settings, development=False, process_count=process_count)
        started = serve_from_processes(settings, listener, app, process_count)
    return _exit_code(started=started)


def _exit_code(*, started: bool) -> int:
    if started:
        log.info("slotlock has stopped")
    return 0 if started else 1


def _checked_settings() -> Settings:
    """Read the settings, and check what no process could start without."""
    settings = read_settings()
    require(settings, "mongo_url", "redis_url", "secret_key")
    if settings.admin_email is not None:
        require(settings, "admin_password")
    check_tracing()
    read_files(settings, development=False)
    asyncio.run(check_mongodb(settings))
    asyncio.run(check_admin_password(settings))
    asyncio.run(_warn_without_admin(settings))
    return settings


async def _warn_without_admin(settings: Settings) -> None:
    """Say how to create the first admin, if there is none and no setting names one."""
    if settings.admin_email is not None:
        return
    async with open_database(settings.mongo_url or "") as database:
        if not await has_admin(database):
            log.warning("no account is an admin yet: %s", FIRST_ADMIN)
