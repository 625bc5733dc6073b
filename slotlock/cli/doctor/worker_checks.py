"""Checks of what workers do: what they cannot read, and with what they cannot go on."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from bson import ObjectId

from slotlock.cli.doctor.finding import Finding, ok, warning
from slotlock.domain.draws.draw import SHOWN_FAILURES
from slotlock.domain.notifications.webhooks import Webhook
from slotlock.domain.users.user import Role, User
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.outbox.outbox_repository import READ_ERRORS, UNREADABLE
from slotlock.infrastructure.mongo.outbox.slot_changes_reader import SlotChangesReader
from slotlock.infrastructure.mongo.outbox.webhook_repository import to_webhook
from slotlock.infrastructure.mongo.users.user_documents import PUBLIC_FIELDS, to_user

# A closing or a publication takes minutes at most.
MAX_DRAW_AGE = timedelta(minutes=10)
SHOWN_FOR = timedelta(days=7)
MAX_NAMED = 3


async def check_workers(database: Database) -> AsyncIterator[Finding]:
    """Yield a finding for each kind of work. Raises: PyMongoError."""
    now = datetime.now(UTC)
    yield await _check_reader(database, now)
    yield await _check_entries(database)
    yield await _check_draws(database, now)
    yield await _check_webhooks(database)


async def _check_reader(database: Database, now: datetime) -> Finding:
    unread = await SlotChangesReader(database).find_unread(now - SHOWN_FOR)
    if not unread:
        return ok("outbox reader", "it has read all changes")
    names = _named([f"{each.what} ({each.reason})" for each in unread])
    advice = "nothing about it was sent; the log of the worker has the whole error"
    return warning("outbox reader", f"it could not read {names}", advice)


async def _check_entries(database: Database) -> Finding:
    query = {"dueAt": {"$exists": True}, "note": {"$regex": f"^{UNREADABLE}"}}
    found = await database["outbox"].find(query, {"note": 1}, limit=MAX_NAMED + 1).to_list()
    if not found:
        return ok("outbox entries", "all can be read")
    names = _named([f"{each['_id']} ({each['note']})" for each in found])
    advice = "is a process of a newer release missing? They are tried again each hour"
    return warning("outbox entries", names, advice)


async def _check_draws(database: Database, now: datetime) -> Finding:
    waits, fails = {"dueAt": {"$lte": now - MAX_DRAW_AGE}}, {"failures": {"$gte": SHOWN_FAILURES}}
    older = {"serverSeed": {"$exists": False}}  # before version 1.0, which reads none of these
    query = {"$or": [waits, fails, older]}
    fields = {"campaign": 1, "problem": {"$cond": ["$serverSeed", "$problem", "older format"]}}
    found = await database["draws"].find(query, fields, sort=[("dueAt", 1)]).to_list()
    if not found:
        return ok("draws", "none waits for a worker")
    names = _named(
        [
            f"draw {each['_id']} of campaign_{each['campaign']}"
            + (f" ({each['problem']})" if "problem" in each else "")
            for each in found
        ]
    )
    advice = "the log of the worker says why; does `slotlock worker` run?"
    return warning("draws", f"{names}: no worker could go on", advice)


async def _check_webhooks(database: Database) -> Finding:
    """Find webhooks that cannot be read, and those whose creators could not create them now."""
    unreadable, webhooks = list[str](), list[Webhook]()
    async for document in database["webhooks"].find(sort=[("_id", 1)]):
        try:
            webhooks.append(to_webhook(document))
        except READ_ERRORS as error:
            unreadable.append(f"webhook_{document['_id']} ({error!r})")
    if unreadable:
        advice = "it gets nothing: delete it in MongoDB, and create it again"
        return warning("webhooks", f"{_named(unreadable)}: cannot be read", advice)
    ids = [ObjectId(each.created_by) for each in webhooks]
    users = database["users"].find({"_id": {"$in": ids}, "banned": None}, PUBLIC_FIELDS)
    creators = {user.id: user for user in [to_user(each) async for each in users]}
    left = [
        each
        for each in webhooks
        if each.is_enabled and not _may_create(creators.get(each.created_by), each)
    ]
    if not left:
        return ok("webhooks", "all can be read, and their creators may create them")
    names = _named([f"webhook_{each.id} of user_{each.created_by}" for each in left])
    advice = "webhooks belong to the site and go on: delete them, or rotate their secrets"
    return warning("webhooks", f"{names}: their creators may not create them any more", advice)


def _may_create(creator: User | None, webhook: Webhook) -> bool:
    if creator is None or creator.erased:
        return False
    return creator.role is Role.ADMIN or (
        creator.role.is_organizer and webhook.campaign_id is not None
    )


def _named(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more
