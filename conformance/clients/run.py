"""Putting one client through all checks."""

from contextlib import AsyncExitStack
from pathlib import Path

import httpx

from conformance.apps import ConformanceApp
from conformance.clients.checks import CHECKS
from conformance.clients.client_process import ClientLibrary, start_client
from conformance.clients.scenario import CREATE, Scene, execute, register, sign_in


async def failed_checks(
    library: ClientLibrary, app: ConformanceApp, home: Path, log: Path
) -> list[str]:
    """The checks that the client does not pass, each with the reason."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=30))
        admin, token = await sign_in(http, app), await register(http, app)
        slot = str((await execute(http, app, admin, CREATE))["id"])
        member, nobody, pretender = [
            await stack.enter_async_context(start_client(library, app, each, home, log))
            for each in (token, "", f"{token}x")
        ]
        scene = Scene(app, member, nobody, pretender, http, admin, slot)
        failures = []
        for name, check in CHECKS.items():
            try:
                await check(scene)
            except Exception as error:  # whatever goes wrong is what the check is for
                failures.append(f"{name}: {type(error).__name__} {error}")
        return failures
