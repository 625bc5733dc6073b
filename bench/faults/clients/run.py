"""Runs all clients of a campaign, from their accounts to the last comparison."""

import asyncio
import time
from collections.abc import Sequence

import aiohttp

from bench.faults.clients.creators import run_creator
from bench.faults.clients.plan import ClientPlan, Clients
from bench.faults.clients.probes import Probe
from bench.faults.clients.quiet_users import run_quiet_user
from bench.faults.clients.sessions import run_session
from bench.faults.clients.setup import set_up
from bench.faults.clients.tickets import finish_tickets
from bench.faults.clients.users import run_user
from bench.faults.clients.watchers import Watcher
from bench.faults.history import HistoryWriter

# Many servers close an idle connection after 5 s, possibly at the moment when it is used.
IDLE_TIMEOUT_S = 3.0


async def run_clients(
    plan: ClientPlan, apps: Sequence[str], history: HistoryWriter, stop: asyncio.Event
) -> None:
    """Run the clients until the event is set, then wait until tickets and watchers converge.

    Set `stop` when all faults are over. `plan.ready` is set once users and slots exist: the faults
    begin then. Raises SoakError if users and slots cannot be created.
    """
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_TIMEOUT_S)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        clients = Clients(plan, apps, history, stop, http)
        await set_up(clients)
        watchers = [
            Watcher(clients, clients.users[number % plan.users], number)
            for number in range(plan.watchers)
        ]
        watching = [asyncio.create_task(each.run()) for each in watchers]
        plan.ready.set()
        try:
            async with asyncio.TaskGroup() as tasks:
                for app, slots in zip(apps, clients.probe_slots, strict=True):
                    probe = Probe(clients, app, clients.probe_users, slots)
                    tasks.create_task(probe.run())
                for user in clients.users:
                    tasks.create_task(run_user(clients, user))
                for signed_in in clients.signed_in:
                    tasks.create_task(run_session(clients, signed_in))
                for user in clients.quiet_users:
                    tasks.create_task(run_quiet_user(clients, user))
                for creator in clients.creators:
                    tasks.create_task(run_creator(clients, creator))
            await finish_tickets(clients)
            deadline = time.monotonic() + plan.converge_s
            for slot in (*clients.slots, *clients.quiet_slots):
                await asyncio.gather(*(each.converge(slot, deadline) for each in watchers))
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
