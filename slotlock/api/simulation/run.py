"""The whole of a simulation: people, a campaign, the rush, and the truth it is held against."""

import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import datetime

from slotlock.api.simulation import campaign, truth
from slotlock.api.simulation.abreast import abreast
from slotlock.api.simulation.clock import Clock
from slotlock.api.simulation.crowd import register_all, sign_in, strangers
from slotlock.api.simulation.findings import Run
from slotlock.api.simulation.http import Server, server_at
from slotlock.api.simulation.invariants import Evidence, check
from slotlock.api.simulation.ledger import Ledger, Person, Slot
from slotlock.api.simulation.open_files import allow_open_files
from slotlock.api.simulation.plan import By, Organiser, Plan, SimulationError, UnreachedError
from slotlock.api.simulation.progress import progress
from slotlock.api.simulation.rush import Rush, wishes
from slotlock.api.simulation.sockets import Socket, sockets_of
from slotlock.api.simulation.steps import Steps
from slotlock.api.simulation.tickets import Tickets, check_queue
from slotlock.api.simulation.watching import Watch

# Of each kind of question that is asked once more in the end, at most so many.
SAMPLE = 500


async def simulate(plan: Plan, organiser: Organiser) -> Run:
    """Carry it through. Errors: SimulationError."""
    connections = allow_open_files(plan)
    try:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(server_at(plan.url, connections))
            socket_of = await stack.enter_async_context(sockets_of(plan.url))
            return await Simulation(plan, organiser, server, socket_of).run()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        # What is no slotlock may answer whatever it likes, and an address may be none.
        told = f"{type(error).__name__}: {error}"
        raise SimulationError(f"{plan.url} does not answer as slotlock does ({told})") from error
    except UnreachedError as error:
        raise SimulationError(
            f"{plan.url} does not answer: {error} (another address: --url, or PORT)"
        ) from None


class Simulation:
    """One run and what its parts share."""

    def __init__(
        self,
        plan: Plan,
        organiser: Organiser,
        server: Server,
        socket_of: Callable[[str], Socket],
    ) -> None:
        self._plan = plan
        self._organiser = organiser
        self._server = server
        self._socket_of = socket_of
        self._clock = Clock()
        self._steps = Steps(shown=plan.in_steps, name_slots=plan.asks > 1)

    async def run(self) -> Run:
        """From signing in to the invariants."""
        token = await sign_in(self._server, self._organiser)
        if self._plan.by is By.QUEUE:
            await check_queue(self._server, token)
        crowd = await self._registered()
        # Registering thousands takes longer than a token lives.
        token = await sign_in(self._server, self._organiser)
        campaign_id, slots = await campaign.build(self._server, self._plan, token)
        ledger = Ledger(wishes(self._plan, crowd, slots))
        tickets = await self._tickets(crowd, ledger)
        watch = Watch(slots, self._clock, ledger)
        async with watch.through(self._socket_of(token)):
            opens_at = await campaign.set_opening(self._server, token, campaign_id)
            requests, cpu_seconds = await self._rush(ledger, watch, tickets, opens_at)
            evidence = await self._evidence(token, slots, ledger, watch, tickets)
        return Run(
            self._plan,
            campaign_id,
            opens_at,
            ledger.last_final_at,
            requests,
            cpu_seconds,
            ledger,
            watch.points,
            evidence,
            check(evidence),
        )

    async def _registered(self) -> list[Person]:
        crowd, plan = strangers(self._plan.people), self._plan
        registered = 0

        def one_more() -> None:
            nonlocal registered
            registered += 1

        print(
            f"{plan.people:,} people, slots {plan.slots:,}, places in each {plan.places:,}, "
            f"asks of each {plan.asks:,}, by {plan.by}, at {plan.url}",
            flush=True,
        )
        line = lambda: f"registered {registered:,} of {plan.people:,}"  # noqa: E731
        async with progress(line, shown=not plan.in_steps):
            await register_all(self._server, crowd, one_more)
        return crowd

    async def _tickets(self, crowd: list[Person], ledger: Ledger) -> Tickets | None:
        if self._plan.by is not By.QUEUE:
            return None
        tickets = Tickets(self._server, self._socket_of, ledger, self._steps, self._clock.now)
        await abreast(tickets.open_socket, crowd)
        return tickets

    async def _rush(
        self, ledger: Ledger, watch: Watch, tickets: Tickets | None, opens_at: datetime
    ) -> tuple[int, float]:
        self._clock.open_at(opens_at)
        print(f"it opens at {opens_at.astimezone():%H:%M:%S}", flush=True)
        rush = Rush(self._plan, self._server, ledger, self._clock, self._steps, tickets)
        requests, cpu = self._server.requests, time.process_time()

        def line() -> str:
            return (
                f"{self._clock.now():6.1f} s  asked {ledger.asked:,}  "
                f"answered {ledger.answered:,}  booked {ledger.booked:,}  "
                f"places left {watch.places_left:,}"
            )

        async with progress(line, shown=not self._plan.in_steps):
            await rush.run()
        return self._server.requests - requests, time.process_time() - cpu

    async def _evidence(
        self,
        token: str,
        slots: list[Slot],
        ledger: Ledger,
        watch: Watch,
        tickets: Tickets | None,
    ) -> Evidence:
        chance = random.Random(self._plan.seed)  # noqa: S311  (a sample, not a secret)
        answered = [ask for ask in ledger.asks if ask.outcome is not None]
        some = chance.sample(answered, min(SAMPLE, len(answered)))
        # Asked again first, so that the rosters show what that may have done.
        again = await truth.asked_again(self._server, some, tickets)
        now = await truth.slots_now(self._server, token, slots)
        await watch.heard({slot_id: slot.remaining for slot_id, slot in now.items()})
        people = {ask.person.user_id: ask.person for ask in some}
        own = await truth.own_bookings(self._server, list(people.values()))
        return Evidence(slots, ledger.asks, watch.remaining, truth.Truth(now, own, again))
