"""The whole of a simulation: people, a campaign, the rush, and the truth it is held against."""

import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime

from slotlock.simulation import server_state, setup
from slotlock.simulation.availability_watcher import AvailabilityWatcher
from slotlock.simulation.client.concurrency import gather_limited, raise_open_file_limit
from slotlock.simulation.client.http import GraphQLClient, open_client
from slotlock.simulation.client.websocket import WebSocketClient, open_websockets
from slotlock.simulation.model.attempts import AttemptLog, Clock, SimulatedSlot, SimulatedUser
from slotlock.simulation.model.invariants import Evidence, check_invariants
from slotlock.simulation.model.plan import (
    BookingMode,
    NoResponseError,
    Organizer,
    SimulationConfig,
    SimulationError,
)
from slotlock.simulation.report.metrics import SimulationResult
from slotlock.simulation.report.progress import show_progress
from slotlock.simulation.report.steps import StepPrinter
from slotlock.simulation.rush import Rush, plan_attempts
from slotlock.simulation.setup import generate_users, register_all, sign_in
from slotlock.simulation.tickets import TicketClient, check_queue

# Of each kind of question that is asked once more in the end, at most so many.
SAMPLE_SIZE = 500


async def simulate(config: SimulationConfig, organizer: Organizer) -> SimulationResult:
    """Carry it through. Errors: SimulationError."""
    connections = raise_open_file_limit(config)
    try:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(open_client(config.url, connections))
            socket_of = await stack.enter_async_context(open_websockets(config.url))
            return await Simulation(config, organizer, server, socket_of).run()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        # What is no slotlock may answer whatever it likes, and an address may be none.
        told = f"{type(error).__name__}: {error}"
        raise SimulationError(f"{config.url} does not answer as slotlock does ({told})") from error
    except NoResponseError as error:
        raise SimulationError(
            f"{config.url} does not answer: {error} (another address: --url, or PORT)"
        ) from None


class Simulation:
    """One run and what its parts share."""

    def __init__(
        self,
        config: SimulationConfig,
        organizer: Organizer,
        client: GraphQLClient,
        create_socket: Callable[[str], WebSocketClient],
    ) -> None:
        self._config = config
        self._organizer = organizer
        self._client = client
        self._create_socket = create_socket
        self._clock = Clock()
        self._step_printer = StepPrinter(enabled=config.is_verbose, name_slots=config.attempts > 1)

    async def run(self) -> SimulationResult:
        """From signing in to the invariants."""
        token = await sign_in(self._client, self._organizer)
        if self._config.mode is BookingMode.QUEUE:
            await check_queue(self._client, token)
        crowd = await self._register_users()
        # Registering thousands takes longer than a token lives.
        token = await sign_in(self._client, self._organizer)
        campaign_id, slots = await setup.create_campaign(self._client, self._config, token)
        ledger = AttemptLog(plan_attempts(self._config, crowd, slots))
        tickets = await self._open_ticket_client(crowd, ledger)
        watch = AvailabilityWatcher(slots, self._clock, ledger)
        async with watch.watch(self._create_socket(token)):
            opens_at = await setup.set_opening(self._client, token, campaign_id)
            requests, cpu_seconds = await self._run_rush(ledger, watch, tickets, opens_at)
            evidence = await self._collect_evidence(token, slots, ledger, watch, tickets)
        return SimulationResult(
            self._config,
            campaign_id,
            opens_at,
            ledger.last_final_response_at,
            requests,
            cpu_seconds,
            ledger,
            watch.places_left_series,
            evidence,
            check_invariants(evidence),
        )

    async def _register_users(self) -> list[SimulatedUser]:
        crowd, plan = generate_users(self._config.users), self._config
        registered = 0

        def count_registered() -> None:
            nonlocal registered
            registered += 1

        print(
            f"{plan.users:,} people, slots {plan.slots:,}, places in each {plan.places:,}, "
            f"asks of each {plan.attempts:,}, by {plan.mode}, at {plan.url}",
            flush=True,
        )
        line = lambda: f"registered {registered:,} of {plan.users:,}"  # noqa: E731
        async with show_progress(line, enabled=not plan.is_verbose):
            await register_all(self._client, crowd, count_registered)
        return crowd

    async def _open_ticket_client(
        self, users: list[SimulatedUser], attempt_log: AttemptLog
    ) -> TicketClient | None:
        if self._config.mode is not BookingMode.QUEUE:
            return None
        tickets = TicketClient(
            self._client, self._create_socket, attempt_log, self._step_printer, self._clock.now
        )
        await gather_limited(tickets.open_socket, users)
        return tickets

    async def _run_rush(
        self,
        attempt_log: AttemptLog,
        watcher: AvailabilityWatcher,
        ticket_client: TicketClient | None,
        opens_at: datetime,
    ) -> tuple[int, float]:
        self._clock.open_at(opens_at)
        print(f"it opens at {opens_at.astimezone():%H:%M:%S}", flush=True)
        rush = Rush(
            self._config, self._client, attempt_log, self._clock, self._step_printer, ticket_client
        )
        requests, cpu = self._client.request_count, time.process_time()

        def render_status() -> str:
            return (
                f"{self._clock.now():6.1f} s  asked {attempt_log.sent_count:,}  "
                f"answered {attempt_log.answered_count:,}  booked {attempt_log.booked_count:,}  "
                f"places left {watcher.places_left:,}"
            )

        async with show_progress(render_status, enabled=not self._config.is_verbose):
            await rush.run()
        return self._client.request_count - requests, time.process_time() - cpu

    async def _collect_evidence(
        self,
        token: str,
        slots: list[SimulatedSlot],
        attempt_log: AttemptLog,
        watcher: AvailabilityWatcher,
        ticket_client: TicketClient | None,
    ) -> Evidence:
        chance = random.Random(self._config.seed)  # noqa: S311  (a sample, not a secret)
        answered = [ask for ask in attempt_log.attempts if ask.outcome is not None]
        some = chance.sample(answered, min(SAMPLE_SIZE, len(answered)))
        # Asked again first, so that the rosters show what that may have done.
        again = await server_state.retry_all(self._client, some, ticket_client)
        now = await server_state.load_slot_states(self._client, token, slots)
        await watcher.wait_until_seen({slot_id: slot.remaining for slot_id, slot in now.items()})
        people = {ask.user.user_id: ask.user for ask in some}
        own = await server_state.load_own_bookings(self._client, list(people.values()))
        return Evidence(
            slots,
            attempt_log.attempts,
            watcher.remaining,
            server_state.ServerState(now, own, again),
        )
