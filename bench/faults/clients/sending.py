"""Sends requests to apps that may be dead, frozen or cut off, and writes them to the history."""

import asyncio
import random
import time
from typing import Any

from bench.faults.clients.plan import (
    REQUEST_TIMEOUT_S,
    Clients,
    ClientUser,
    SentCommand,
    type_of,
)
from bench.faults.history import ACCEPTED, UNANSWERED, UNAVAILABLE, Json, Operation
from slotlock.simulation.model.plan import NoResponseError

TIMEOUT, CONNECTION_LOST = "TIMEOUT", "CONNECTION_LOST"
MAX_SENDS = 4
# Refusals that ask for another attempt, and the pause before it.
RETRIED = {"Locked", "QueueFull", "TeamBusy"}
RETRY_S = (0.05, 0.5)
# Responses that stay the same; a ticket that was lost is the exception.
LASTING = {*ACCEPTED, "Ticket", "Slot"}
# This share of accepted requests is repeated, as if the response had been lost on its way.
REPEATED_SHARE = 0.05
# This share of requests with a key is sent several times at once, and this share without waiting.
AT_ONCE_SHARE, HANG_UP_SHARE = 0.1, 0.03
# At the end, so many requests are repeated, and those without a response until there is one.
FINAL_SAMPLE, FINAL_S, FINAL_CALLERS = 300, 60.0, 16


async def send(
    clients: Clients,
    user: ClientUser,
    name: str,
    document: str,
    variables: Json,
    app: str,
    timeout_s: float = REQUEST_TIMEOUT_S,
) -> Operation:
    """Send one request to an app and return it with its response, if there is one."""
    given = variables.get("input", variables)
    operation = Operation(
        clients.history.next_id(), user.name, name, user.id, {**given, "app": app}, time.monotonic()
    )
    try:
        async with asyncio.timeout(timeout_s):
            response = await clients.client_of[app].post(document, user.token, variables)
        _read_response(operation, *response)
        operation.finished_at = time.monotonic()
    except TimeoutError:
        operation.error = TIMEOUT
    except NoResponseError:
        operation.error = CONNECTION_LOST
    finally:
        clients.history.write(operation)
    shown = operation.outcome or {}
    if shown.get("__typename") == "Ticket":  # also those of equal requests that nobody follows
        clients.tickets.setdefault(str(shown["id"]), (user, str(shown["status"])))
    return operation


def _read_response(operation: Operation, status: int, body: Any) -> None:
    result: Json = body or {}
    if errors := result.get("errors"):
        extensions = errors[0].get("extensions", {})
        operation.error = str(extensions.get("code", "NO_CODE"))
        if operation.error == "INTERNAL" and "retryAfterMs" in extensions:
            operation.error = UNAVAILABLE
    elif "data" in result:
        (root_field,) = result["data"].values()
        operation.outcome = root_field or {"__typename": "nothing"}
    else:
        operation.error = f"HTTP_{status}"


async def send_until_answered(
    clients: Clients,
    user: ClientUser,
    name: str,
    document: str,
    variables: Json,
    rng: random.Random,
) -> Operation:
    """Send a request, and repeat it at the other apps until there is a response, if it has a key.

    Sometimes it is sent several times at once, or repeated even after its response, and sometimes
    the client hangs up.
    """
    first = rng.randrange(len(clients.apps))
    given = variables.get("input", variables)
    is_repeatable = bool(given.get("idempotencyKey") or given.get("key"))

    async def send_once(attempt: int, timeout_s: float = REQUEST_TIMEOUT_S) -> Operation:
        app = clients.apps[(first + attempt) % len(clients.apps)]
        return await send(clients, user, name, document, variables, app, timeout_s)

    if rng.random() < HANG_UP_SHARE:
        sent = await send_once(0, rng.uniform(0.001, 0.08))
    elif is_repeatable and rng.random() < AT_ONCE_SHARE:
        all_sent = await asyncio.gather(*map(send_once, range(rng.randint(2, 4))))
        sent = next((each for each in all_sent if not _asks_for_another(each)), all_sent[0])
    else:
        sent = await send_once(0)
    if not is_repeatable:
        return sent
    attempt = 1
    while _asks_for_another(sent) and attempt < MAX_SENDS:
        if not await clients.sleep(rng.uniform(*RETRY_S)):
            break
        sent = await send_once(attempt)
        attempt += 1
    command = SentCommand(user, name, document, variables)
    if _asks_for_another(sent):
        clients.open.append(command)
    elif type_of(sent) in LASTING:  # another refusal may follow from another state
        clients.accepted.append(command)
        if rng.random() < REPEATED_SHARE:
            await send_once(attempt)
    return sent


def _asks_for_another(sent: Operation) -> bool:
    """Return whether a request has no response, or one that asks for another attempt."""
    return sent.outcome is None or type_of(sent) in RETRIED


async def finish_commands(clients: Clients) -> None:
    """Send open requests until they have a response, and a sample of the others once more."""
    rng, callers = clients.rng("once more"), asyncio.Semaphore(FINAL_CALLERS)
    sample = rng.sample(clients.accepted, min(len(clients.accepted), FINAL_SAMPLE))
    deadline = time.monotonic() + FINAL_S

    async def finish(command: SentCommand) -> None:
        name, document, variables = command.name, command.document, command.variables
        async with callers:
            while True:
                app = rng.choice(clients.apps)
                sent = await send(clients, command.user, name, document, variables, app)
                if type_of(sent) == "Ticket":
                    ticket = sent.outcome or {}
                    clients.tickets[ticket["id"]] = (command.user, str(ticket["status"]))
                if not _asks_for_another(sent):
                    return
                if time.monotonic() > deadline:
                    break
                await asyncio.sleep(rng.uniform(*RETRY_S))
        now, given = time.monotonic(), variables.get("input", variables)
        user, id_ = command.user, clients.history.next_id()
        clients.history.write(Operation(id_, user.name, UNANSWERED, user.id, given, now, now))

    await asyncio.gather(*map(finish, (*clients.open, *sample)))
