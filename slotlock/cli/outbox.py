"""Commands for the outbox, which work on MongoDB without a running app."""

import asyncio
import secrets
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import datetime

from slotlock.api.settings.settings import Settings
from slotlock.cli.deployment import CommandError, settings_with_mongodb
from slotlock.domain.notifications.mail_kinds import TEST, direct_mail
from slotlock.domain.notifications.outbox import OutboxEntry, OutboxState
from slotlock.domain.shared.text import format_in_zone
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.infrastructure.mongo.client import open_database
from slotlock.infrastructure.mongo.clock import MongoClock, mongo_clock
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter, OutboxRepository
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.services.notifications.outbox_retry import retry_entry, retry_unsent

POLL_S = 0.2
SEND_TIMEOUT_S = 30.0
PAGE_SIZE = 10_000


def define_outbox(parser: ArgumentParser) -> None:
    """Add the actions of `slotlock outbox`."""
    parser.set_defaults(run=_run)
    outbox = parser.add_subparsers(required=True, metavar="ACTION", parser_class=ArgumentParser)
    listing = outbox.add_parser("list", help="print what is to be sent and was sent, newest first")
    listing.add_argument("--state", type=OutboxState, choices=list(OutboxState))
    listing.add_argument("--limit", type=_parse_limit, default=100, help="default 100")
    listing.set_defaults(action=_list)
    retrying = outbox.add_parser(
        "retry", help="send what failed, or had an undeliverable address, once more"
    )
    retrying.add_argument("entry", nargs="?", help="an id from `list`; default: all of these")
    retrying.add_argument(
        "--since", type=_parse_time, help="only what happened since then, as 2026-09-01T08:00Z"
    )
    retrying.set_defaults(action=_retry)
    testing = outbox.add_parser("send-test", help="send a mail, and print what the server responds")
    testing.add_argument("address")
    testing.set_defaults(action=_send_test)


def _parse_limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= PAGE_SIZE:
        raise ArgumentTypeError(f"a number from 1 to {PAGE_SIZE}")
    return int(text)


def _parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ArgumentTypeError("a time with an offset, such as 2026-09-01T08:00+02:00")
    return time


def _run(args: Namespace) -> None:
    asyncio.run(_act(settings_with_mongodb(), args))


async def _act(settings: Settings, args: Namespace) -> None:
    async with (
        open_database(settings.mongo_url or "") as database,
        mongo_clock(database, settings.max_clock_skew_s) as clock,
    ):
        await args.action(Repositories(database), clock, args)


async def _list(repositories: Repositories, _clock: MongoClock, args: Namespace) -> None:
    for entry in (await repositories.outbox.page(OutboxFilter(state=args.state), args.limit)).items:
        print(_format(entry))


async def _retry(repositories: Repositories, clock: MongoClock, args: Namespace) -> None:
    outbox, users = repositories.outbox, repositories.users
    if args.entry is not None:
        if isinstance(await retry_entry(outbox, users, args.entry, clock.now()), InvalidInput):
            raise CommandError(
                f"{args.entry} cannot be sent again: it was sent, or had a secret that was deleted"
            )
        print(f"queued: {args.entry}")
        return
    chosen = OutboxFilter(since=args.since)
    queued = await retry_unsent(outbox, users, chosen, clock.now(), PAGE_SIZE)
    print(f"queued: {queued}")


async def _send_test(repositories: Repositories, clock: MongoClock, args: Namespace) -> None:
    address = normalize_email(args.address)
    if address is None:
        raise CommandError(f"{args.address} is not an email address")
    now, outbox = clock.now(), repositories.outbox
    test = direct_mail(TEST, address, secrets.token_hex(8), now, recipient=address)
    await outbox.insert([test], now)
    try:
        async with asyncio.timeout(SEND_TIMEOUT_S):
            entry = await _find_attempted(outbox, test)
    except TimeoutError:
        raise CommandError(
            f"nobody sent {test.id} within {SEND_TIMEOUT_S:g} s: does `slotlock worker`, or "
            "`serve` with its queue, run with SLOTLOCK_SMTP_URL?"
        ) from None
    print(_format(entry))


async def _find_attempted(outbox: OutboxRepository, entry: OutboxEntry) -> OutboxEntry:
    """Wait for the result of the first attempt."""
    while (found := await outbox.find(entry.id)) is None or found.note is None:
        await asyncio.sleep(POLL_S)
    return found


def _format(entry: OutboxEntry) -> str:
    fields = (
        format_in_zone(entry.at),
        entry.state.value,
        f"{entry.attempts} attempts",
        entry.id,
        entry.recipient or "",
        entry.note or "",
    )
    return "\t".join(fields)
