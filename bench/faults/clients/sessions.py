"""Users who stay signed in: they refresh their sessions, and retry without a response."""

from bench.faults.clients import documents
from bench.faults.clients.plan import Clients, ClientUser, type_of
from bench.faults.clients.sending import RETRY_S, send
from bench.faults.history import REFRESH, Operation

PAUSE_S = 0.5


async def run_session(clients: Clients, user: ClientUser) -> None:
    """Refresh a session again and again, and read with each new token, until it ends."""
    while await clients.sleep(user.rng.expovariate(1 / PAUSE_S)):
        sent = await _refresh(clients, user)
        if sent is None or sent.outcome is None or type_of(sent) != "Session":
            return
        user.token, user.refresh_token = sent.outcome["accessToken"], sent.outcome["refreshToken"]
        app = user.rng.choice(clients.apps)
        await send(clients, user, "viewer", documents.VIEWER, {}, app)


async def _refresh(clients: Clients, user: ClientUser) -> Operation | None:
    """Send the refresh token until there is a response; None at the end of the campaign."""
    while True:
        app, variables = user.rng.choice(clients.apps), {"token": user.refresh_token}
        sent = await send(clients, user, REFRESH, documents.REFRESH_SESSION, variables, app)
        if sent.outcome is not None:
            return sent
        if not await clients.sleep(user.rng.uniform(*RETRY_S)):
            return None
