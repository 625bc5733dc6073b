"""Commands for the outbox, which work on MongoDB without a running app."""

import asyncio
import secrets
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from slotlock.cli.commands.declared import MAX_ENTRIES
from slotlock.cli.commands.table import Row
from slotlock.cli.deployment import CommandError, announce, settings_with_mongodb
from slotlock.domain.notifications.mail_kinds import TEST, direct_mail
from slotlock.domain.notifications.outbox import OutboxEntry, OutboxState
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.infrastructure.mongo.client import open_database
from slotlock.infrastructure.mongo.clock import MongoClock, mongo_clock
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter, OutboxRepository
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.services.notifications.outbox_retry import retry_entry, retry_unsent

POLL_S = 0.2
SEND_TIMEOUT_S = 30.0
Result = TypeVar("Result")


def list_entries(args: Namespace) -> list[Row]:
    """Return the newest entries."""

    async def find(repositories: Repositories, _clock: MongoClock) -> list[Row]:
        page = await repositories.outbox.page(OutboxFilter(state=args.state), args.limit)
        return [_to_row(entry) for entry in page.items]

    return asyncio.run(_with_database(find))


def retry(args: Namespace) -> str:
    """Queue an entry, or all that were not sent."""
    return asyncio.run(_with_database(partial(_retry, args)))


def send_test(args: Namespace) -> Row:
    """Send a mail, and return its entry with the response. Raises: CommandError if it failed."""
    return asyncio.run(_with_database(partial(_send_test, args)))


async def _with_database(act: Callable[[Repositories, MongoClock], Awaitable[Result]]) -> Result:
    settings = settings_with_mongodb()
    async with (
        open_database(settings.mongo_url or "") as database,
        mongo_clock(database, settings.max_clock_skew_s) as clock,
    ):
        return await act(Repositories(database), clock)


async def _retry(args: Namespace, repositories: Repositories, clock: MongoClock) -> str:
    outbox, users, name = repositories.outbox, repositories.users, args.entry
    if name is None:
        chosen = OutboxFilter(since=args.since)
        queued = await retry_unsent(outbox, users, chosen, clock.now(), MAX_ENTRIES)
        return f"queued: {queued}"
    found = await outbox.find(name)
    if found is None:
        raise CommandError(f"no entry has the id {name}; `slotlock outbox list` has the ids")
    if isinstance(await retry_entry(outbox, users, name, clock.now()), InvalidInput):
        raise CommandError(
            f"{name} cannot be sent again: it is {found.state.value}, or had a secret that was "
            "deleted"
        )
    return f"queued: {name}"


async def _send_test(args: Namespace, repositories: Repositories, clock: MongoClock) -> Row:
    address = normalize_email(args.address)
    if address is None:
        raise CommandError(f"{args.address} is not an email address")
    now, outbox = clock.now(), repositories.outbox
    test = direct_mail(TEST, address, secrets.token_hex(8), now, recipient=address)
    await outbox.insert([test], now)
    announce(
        f"waiting up to {SEND_TIMEOUT_S:g} s for the worker, or a `serve` with its queue, which "
        "sends the mail by its own SLOTLOCK_SMTP_URL"
    )
    try:
        async with asyncio.timeout(SEND_TIMEOUT_S):
            entry = await _find_attempted(outbox, test)
    except TimeoutError:
        raise CommandError(
            f"nobody sent {test.id}: does `slotlock worker`, or `serve` with its queue, run with "
            "SLOTLOCK_SMTP_URL?"
        ) from None
    if entry.state is not OutboxState.SENT:
        raise CommandError(f"{test.id} was not sent, and is {entry.state.value}: {entry.note}")
    return _to_row(entry)


async def _find_attempted(outbox: OutboxRepository, entry: OutboxEntry) -> OutboxEntry:
    """Wait for the result of the first attempt."""
    while (found := await outbox.find(entry.id)) is None or found.note is None:
        await asyncio.sleep(POLL_S)
    return found


def _to_row(entry: OutboxEntry) -> Row:
    state = entry.state.value
    return entry.at, state, entry.attempts, entry.id, entry.recipient, entry.note
