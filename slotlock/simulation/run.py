"""One simulation from the first sign-in to the check of the invariants."""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime

from slotlock.simulation import rehearsal, server_state, setup
from slotlock.simulation.availability_watcher import AvailabilityWatcher
from slotlock.simulation.client.concurrency import gather_limited, raise_open_file_limit
from slotlock.simulation.client.http import GraphQLClient, open_http
from slotlock.simulation.client.websocket import WebSocketClient, open_websockets
from slotlock.simulation.model.attempts import AttemptLog, Clock, SimulatedSlot, SimulatedUser
from slotlock.simulation.model.invariants import (
    RULE_REFUSALS,
    Evidence,
    ServerState,
    check_invariants,
)
from slotlock.simulation.model.plan import (
    BookingMode,
    NoResponseError,
    Organizer,
    SimulationConfig,
    SimulationError,
)
from slotlock.simulation.report.metrics import SimulationResult
from slotlock.simulation.report.progress import StepPrinter, show_progress
from slotlock.simulation.rush import Rush, plan_attempts
from slotlock.simulation.tickets import TicketClient

# At most so many attempts are sent once more at the end.
SAMPLE_SIZE = 500


async def simulate(config: SimulationConfig, organizer: Organizer) -> SimulationResult:
    """Run a simulation; raises SimulationError if it cannot be completed."""
    max_connections = raise_open_file_limit(config)
    try:
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(open_http(max_connections))
            client = GraphQLClient(config.url, http)
            create_socket = await stack.enter_async_context(open_websockets(config.url))
            return await Simulation(config, organizer, client, create_socket).run()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        # Another program may respond with anything, and the address may be invalid.
        reason = f"{type(error).__name__}: {error}"
        message = f"{config.url} does not respond like slotlock ({reason})"
        raise SimulationError(message) from error
    except NoResponseError as error:
        raise SimulationError(
            f"{config.url} does not respond: {error} (another address: --url, or PORT)"
        ) from None


class Simulation:
    """The steps of one simulation, and the objects that they share."""

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
        """Run all steps."""
        # Before anything is created.
        token = await setup.sign_in(self._client, self._organizer)
        original = None
        if self._config.campaign is not None:
            original = await rehearsal.load_original(self._client, self._config, token)
        users = await self._register_users()
        # The registration of thousands of users takes longer than a token lives.
        token = await setup.sign_in(self._client, self._organizer)
        if original is None:
            campaign_id, slots = await setup.create_campaign(self._client, self._config, token)
            return await self._rush(token, campaign_id, slots, users)
        copy = await rehearsal.copy_campaign(self._client, token, original)
        try:
            self._require_slots(copy.slots)
            await rehearsal.publish(self._client, token, copy, original, users)
            return await self._rush(token, copy.id, copy.slots, users)
        finally:
            token = await setup.sign_in(self._client, self._organizer)
            await rehearsal.remove(self._client, token, copy, users)

    def _require_slots(self, slots: Sequence[SimulatedSlot]) -> None:
        if self._config.attempts > len(slots):
            count = f"the campaign has {len(slots)} published slots"
            raise SimulationError(f"argument --attempts: at most as many as there are; {count}")

    async def _rush(
        self,
        token: str,
        campaign_id: str,
        slots: Sequence[SimulatedSlot],
        users: list[SimulatedUser],
    ) -> SimulationResult:
        """Open the published campaign, let the users book, and collect the evidence."""
        attempt_log = AttemptLog(plan_attempts(self._config, users, slots))
        ticket_client = await self._open_ticket_client(users, attempt_log)
        watcher = AvailabilityWatcher(slots, self._clock, attempt_log)
        async with watcher.watch(self._create_socket(token)):
            opens_at = await setup.set_opening(self._client, token, campaign_id)
            request_count, cpu_seconds = await self._run_rush(
                attempt_log, watcher, ticket_client, opens_at
            )
            evidence = await self._collect_evidence(
                token, slots, attempt_log, watcher, ticket_client
            )
        return SimulationResult(
            config=self._config,
            campaign_id=campaign_id,
            opened_at=opens_at,
            duration_s=attempt_log.last_final_response_at,
            request_count=request_count,
            cpu_seconds=cpu_seconds,
            attempt_log=attempt_log,
            places_left_series=watcher.places_left_series,
            evidence=evidence,
            invariants=check_invariants(evidence),
        )

    async def _register_users(self) -> list[SimulatedUser]:
        config = self._config
        users = setup.generate_users(config.users)
        print(
            f"{config.size}, "
            f"attempts of each user: {config.attempts:,}, mode: {config.mode}, at {config.url}",
            flush=True,
        )

        def render_status() -> str:
            registered = sum(bool(user.token) for user in users)
            return f"registered {registered:,} of {config.users:,}"

        async with show_progress(render_status, enabled=not config.is_verbose):
            await setup.register_all(self._client, users)
        return users

    async def _open_ticket_client(
        self, users: list[SimulatedUser], attempt_log: AttemptLog
    ) -> TicketClient | None:
        if self._config.mode is not BookingMode.QUEUE:
            return None
        ticket_client = TicketClient(
            self._client, self._create_socket, attempt_log, self._step_printer, self._clock.now
        )
        await gather_limited(ticket_client.open_socket, users)
        return ticket_client

    async def _run_rush(
        self,
        attempt_log: AttemptLog,
        watcher: AvailabilityWatcher,
        ticket_client: TicketClient | None,
        opens_at: datetime,
    ) -> tuple[int, float]:
        """Run the rush; return the number of its requests and the CPU seconds of this process."""
        self._clock.open_at(opens_at)
        print(f"opens at {opens_at.astimezone():%H:%M:%S}", flush=True)
        rush = Rush(
            self._config, self._client, attempt_log, self._clock, self._step_printer, ticket_client
        )
        requests_before, cpu_before = self._client.request_count, time.process_time()

        def render_status() -> str:
            return (
                f"{self._clock.now():6.1f} s  sent {attempt_log.sent_count:,}  "
                f"final {attempt_log.answered_count:,}  booked {attempt_log.booked_count:,}  "
                f"places left {watcher.places_left:,}"
            )

        async with show_progress(render_status, enabled=not self._config.is_verbose):
            await rush.run()
        request_count = self._client.request_count - requests_before
        return request_count, time.process_time() - cpu_before

    async def _collect_evidence(
        self,
        token: str,
        slots: Sequence[SimulatedSlot],
        attempt_log: AttemptLog,
        watcher: AvailabilityWatcher,
        ticket_client: TicketClient | None,
    ) -> Evidence:
        rng = random.Random(self._config.seed)  # noqa: S311  (a sample, not a secret)
        answered = [attempt for attempt in attempt_log.attempts if attempt.outcome is not None]
        sample = rng.sample(answered, min(SAMPLE_SIZE, len(answered)))
        # The repeated requests come first, so that the rosters show their effects.
        retried = await server_state.repeat_all(self._client, sample, ticket_client)
        slot_states = await server_state.load_slot_states(self._client, token, slots)
        await watcher.wait_until_seen(
            {slot_id: state.remaining for slot_id, state in slot_states.items()}
        )
        users = {attempt.user.user_id: attempt.user for attempt in sample}
        own_bookings = await server_state.load_own_bookings(self._client, list(users.values()))
        return Evidence(
            slots,
            attempt_log.attempts,
            watcher.remaining,
            ServerState(slot_states, own_bookings, retried),
            RULE_REFUSALS if self._config.campaign else (),
        )
