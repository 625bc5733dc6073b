"""Runs all checks with one client library."""

from contextlib import AsyncExitStack
from pathlib import Path

import httpx

from conformance.apps import ConformanceApp
from conformance.clients.checks import CHECKS
from conformance.clients.client_process import ClientLibrary, start_client
from conformance.clients.scenario import CREATE, Scenario, execute, register, sign_in


async def failed_checks(
    library: ClientLibrary, app: ConformanceApp, home: Path, log: Path
) -> list[str]:
    """Return the failed checks, each with the reason."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=30))
        admin, token = await sign_in(http, app), await register(http, app)
        slot_id = str((await execute(http, app, admin, CREATE))["id"])
        member, anonymous, impostor = [
            await stack.enter_async_context(start_client(library, app, client_token, home, log))
            for client_token in (token, "", f"{token}x")
        ]
        scenario = Scenario(app, member, anonymous, impostor, http, admin, slot_id)
        failures = []
        for name, check in CHECKS.items():
            try:
                await check(scenario)
            except Exception as error:  # any error is a failed check
                failures.append(f"{name}: {type(error).__name__} {error}")
        return failures
