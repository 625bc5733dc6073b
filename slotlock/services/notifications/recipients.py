"""Who gets a mail about a user: the user, or the guardians, with a mail each.

Mails of guardians wait a minute, so that what happens to all of their children is one mail. Mails
about accounts, such as invitations, go to the users themselves, and are never passed on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from slotlock.domain.notifications.mail_kinds import COLLECTED_FOR, TICKET_DECIDED, WAITLIST_ENDED
from slotlock.domain.notifications.outbox import Channel, OutboxEntry
from slotlock.domain.users.user import User, UserId
from slotlock.services.container import Services


async def to_recipients(services: Services, entries: Sequence[OutboxEntry]) -> list[OutboxEntry]:
    """Return an entry for each recipient of these mails about users; messages stay as they are.

    The ids follow from the change and the recipient, so that a repeated step adds nothing.
    """
    ids = {each.user_id for each in entries if each.user_id and each.channel is Channel.MAIL}
    users = await services.users.find_many(ids) if ids else {}
    return [mail for entry in entries for mail in _of_recipients(entry, users)]


async def find_dependents(
    services: Services, entries: Sequence[OutboxEntry]
) -> Mapping[UserId, User]:
    """Return the users about whom a guardian gets these entries, without former dependents.

    A banned guardian gets none: who bans a parent expects that no news of the child go there.
    """
    ids, guardian_id = {id_ for entry in entries for id_ in entry.dependents}, entries[0].user_id
    if not ids or guardian_id is None:
        return {}
    found = await services.users.find_many({*ids, guardian_id})
    guardian = found.get(guardian_id)
    if guardian is None or guardian.banned:
        return {}
    return {
        user.id: user
        for user in found.values()
        if guardian_id in user.guardians and not user.erased
    }


def without_former(
    entries: Sequence[OutboxEntry], dependents: Mapping[UserId, User]
) -> list[OutboxEntry]:
    """Return the entries of a mail that its reader may still get, as of the same attempt."""
    return [
        replace(entry, attempts=entries[0].attempts)
        for entry in entries
        if not entry.dependents or dependents.keys() & {*entry.dependents}
    ]


def names_of(users: Iterable[User]) -> str:
    """Return the names of dependents, as a mail to their guardian says them."""
    return ", ".join(user.given_name for user in users)


def _of_recipients(entry: OutboxEntry, users: Mapping[UserId, User]) -> Iterator[OutboxEntry]:
    user_id, by = entry.user_id, entry.data.get("by")
    user = users.get(user_id) if user_id else None
    guardians = user.guardians if user else ()
    if entry.kind == TICKET_DECIDED.name and by not in (user_id, *guardians):
        return  # others who ask for a user tell nobody
    is_own = not guardians or (user is not None and user.email is not None)
    for recipient in (*((user_id,) if is_own else ()), *guardians):
        # Those who take somebody off a list know it.
        if entry.kind == WAITLIST_ENDED.name and by == recipient:
            continue
        yield to_guardian(entry, recipient) if recipient in guardians else entry


def to_guardian(entry: OutboxEntry, guardian_id: UserId | None) -> OutboxEntry:
    """Return the entry of a mail to a guardian about the same as one to the user."""
    is_collected = entry.group is not None
    return replace(
        entry,
        id=f"{entry.id}:{guardian_id}",
        due_at=entry.due_at if is_collected else entry.due_at + COLLECTED_FOR,
        user_id=guardian_id,
        # What the guardian may refuse, or is no change of a booking, is a mail of its own.
        group=f"{'user' if is_collected else entry.kind}:{guardian_id}",
        dependents=(entry.user_id,) if entry.user_id else (),
    )
