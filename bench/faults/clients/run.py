"""Runs all clients of a campaign, from their accounts to the last comparison."""

import asyncio
import time
from collections.abc import Sequence

from bench.faults.clients.fault_crowds import run_quiet_user, run_rushes
from bench.faults.clients.organizers import ORGANIZER_ACTIONS, run_creator
from bench.faults.clients.plan import ClientPlan, Clients
from bench.faults.clients.probes import Probe
from bench.faults.clients.sending import finish_commands
from bench.faults.clients.sessions import run_session
from bench.faults.clients.setup import set_up
from bench.faults.clients.tickets import finish_tickets
from bench.faults.clients.users import (
    GUARDIAN_ACTIONS,
    MEMBER_ACTIONS,
    TEAM_THINK_S,
    USER_ACTIONS,
    run_user,
)
from bench.faults.clients.watchers import Watcher
from bench.faults.history import HistoryWriter
from slotlock.simulation.client.http import GraphQLClient, open_http


async def run_clients(
    plan: ClientPlan, apps: Sequence[str], history: HistoryWriter, stop: asyncio.Event
) -> None:
    """Run the clients until the event is set, then wait until tickets and watchers converge.

    Set `stop` when all faults are over. `plan.ready` is set once users and slots exist: the faults
    begin then. Raises CampaignError if users and slots cannot be created.
    """
    async with open_http(max_connections=0) as http:
        client_of = {app: GraphQLClient(app, http) for app in apps}
        clients = Clients(plan, apps, history, stop, client_of)
        await set_up(clients)
        watchers = [
            Watcher(clients, clients.users[number % plan.users], number)
            for number in range(plan.watchers)
        ]
        watching = [asyncio.create_task(each.run()) for each in watchers]
        plan.ready.set()
        try:
            await _run_all(clients)
            await finish_tickets(clients)
            await finish_commands(clients)
            await finish_tickets(clients)  # a request that was repeated may have a new one
            deadline = time.monotonic() + plan.converge_s
            for slot in (*clients.slots, *clients.quiet_slots):
                await asyncio.gather(*(each.converge(slot, deadline) for each in watchers))
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)


async def _run_all(clients: Clients) -> None:
    """Run everything that a client does until the campaign stops."""
    think_s = clients.plan.mean_think_s
    members = [member for team in clients.teams for member in team.members]
    async with asyncio.TaskGroup() as tasks:
        for app, slots in zip(clients.apps, clients.probe_slots, strict=True):
            tasks.create_task(Probe(clients, app, clients.probe_users, slots).run())
        for user in clients.users:
            tasks.create_task(run_user(clients, user, USER_ACTIONS, think_s))
        for user in members:
            tasks.create_task(run_user(clients, user, MEMBER_ACTIONS, TEAM_THINK_S))
        for user in clients.guardians:
            tasks.create_task(run_user(clients, user, GUARDIAN_ACTIONS, TEAM_THINK_S))
        for user in clients.organizers:
            tasks.create_task(run_user(clients, user, ORGANIZER_ACTIONS, TEAM_THINK_S))
        for user in clients.signed_in:
            tasks.create_task(run_session(clients, user))
        for user in clients.quiet_users:
            tasks.create_task(run_quiet_user(clients, user))
        for user in clients.creators:
            tasks.create_task(run_creator(clients, user))
        tasks.create_task(run_rushes(clients))
