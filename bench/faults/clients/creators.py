"""Organizers who create slots with idempotency keys."""

from datetime import UTC, datetime, timedelta

from bench.faults.clients.plan import Clients
from bench.faults.clients.sending import send, send_until_answered
from bench.faults.history import CREATE_SLOT, Json
from bench.soak.clients import documents
from bench.soak.clients.client_user import ClientUser

PAUSE_S = 1.0
# So many are repeated after their response, as if it had been lost on its way.
REPEATED_SHARE = 0.2


async def run_creator(clients: Clients, user: ClientUser) -> None:
    """Create slots until the campaign stops, each with a key and a title of its own."""
    start = datetime.now(UTC) + timedelta(days=40)
    times = {
        "startTime": start.isoformat(timespec="seconds"),
        "endTime": (start + timedelta(hours=1)).isoformat(timespec="seconds"),
    }
    while await clients.sleep(user.rng.expovariate(1 / PAUSE_S)):
        key = user.next_key()
        given = {"title": f"Slot of {key}", "capacity": 1, "idempotencyKey": key, **times}
        variables: Json = {"input": given}
        document, rng = documents.CREATE, user.rng
        sent = await send_until_answered(clients, user, CREATE_SLOT, document, variables, rng)
        if sent.outcome is not None and rng.random() < REPEATED_SHARE:
            app = rng.choice(clients.apps)
            await send(clients, user, CREATE_SLOT, document, variables, app)
