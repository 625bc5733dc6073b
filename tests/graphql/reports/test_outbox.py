"""Organizers see the outbox and what its mails say; admins send what failed again."""

import secrets
from dataclasses import replace

from slotlock.auth.container import Auth
from slotlock.domain.notifications.mail_kinds import PASSWORD_CHANGED, direct_mail
from slotlock.domain.notifications.outbox import (
    UNDELIVERABLE,
    Channel,
    Delivery,
    OutboxEntry,
    OutboxState,
)
from slotlock.domain.users.user import Role
from tests.support.clients.booking_client import BookingClient

RETRY = """mutation($id: ID!) { retryOutboxEntry(id: $id) { __typename
  ... on OutboxEntryQueued { entry { id state dueAt } }
  ... on InvalidInput { fields { field } } } }"""
RETRY_ALL = """mutation($filter: OutboxFilterInput) {
  retryFailedOutboxEntries(filter: $filter) {
    ... on OutboxEntriesQueued { count } ... on InvalidInput { fields { field } } } }"""
MARKED = "{ undeliverableAddresses { count firstAt lastAt } }"
PAGE = """query($kind: String!, $after: String) {
  outbox(filter: {kind: $kind}, first: 1, after: $after) {
    nodes { id } pageInfo { endCursor hasNextPage } } }"""
PREVIEWS = """query($locale: String, $slot: ID, $campaign: ID) {
  mailPreviews(locale: $locale, slotId: $slot, campaignId: $campaign) {
    kind subject text html
} }"""


async def test_admins_send_what_failed_again_with_what_is_sent_with_it(
    auth: Auth, admin: BookingClient, organizer: BookingClient
) -> None:
    outbox, now, subject = auth.repositories.outbox, auth.now(), secrets.token_hex(6)
    mails = [
        OutboxEntry(f"booked:{subject}:{n}", Channel.MAIL, "booked", now, now, group=subject)
        for n in range(2)
    ]
    secret = direct_mail(PASSWORD_CHANGED, subject, "0", now, recipient="a@school.test")
    await outbox.insert([*mails, secret], now)
    for mail in (mails[0], secret):
        [leased] = await outbox.lease([mail], now)
        await outbox.finish(leased, Delivery(OutboxState.FAILED, "550 no"), now)
    follower = await outbox.find(mails[1].id)
    assert follower is not None
    assert (follower.state, follower.lead_id) == (OutboxState.FAILED, mails[0].id)
    refused = (await organizer.send(RETRY, id=mails[0].id))["errors"][0]
    assert refused["extensions"]["code"] == "FORBIDDEN"
    queued = (await admin.execute(RETRY, id=follower.id))["entry"]
    assert queued.pop("dueAt") is not None
    assert queued == {"id": mails[0].id, "state": "QUEUED"}
    for entry_id in (secret.id, "booked:unknown:0"):
        assert (await admin.execute(RETRY, id=entry_id))["fields"] == [{"field": "id"}]


async def test_admins_send_all_that_failed_again_in_one_request(
    auth: Auth, admin: BookingClient, organizer: BookingClient
) -> None:
    outbox, now, kind = auth.repositories.outbox, auth.now(), secrets.token_hex(6)
    failed, suppressed = OutboxState.FAILED, OutboxState.SUPPRESSED
    states = [failed, failed, OutboxState.SENT, suppressed, suppressed]
    notes = ["550 no", "550 no", "taken", UNDELIVERABLE, "it is over"]
    mails = [OutboxEntry(f"{kind}:{n}:0", Channel.MAIL, kind, now, now) for n in range(5)]
    secret = replace(direct_mail(PASSWORD_CHANGED, kind, "0", now), kind=kind)
    other_secret = replace(secret, id=f"{secret.id}:1")
    await outbox.insert([*mails, secret, other_secret], now)
    results = zip([*states, failed, suppressed], [*notes, "550 no", UNDELIVERABLE], strict=True)
    for mail, (state, note) in zip([*mails, secret, other_secret], results, strict=True):
        [leased] = await outbox.lease([mail], now)
        await outbox.finish(leased, Delivery(state, note), now)
    assert (await organizer.send(RETRY_ALL, filter={"kind": kind}))["errors"]
    refused = await admin.execute(RETRY_ALL, filter={"kind": kind, "state": "SENT"})
    assert refused == {"fields": [{"field": "state"}]}
    only_suppressed = {"kind": kind, "state": "SUPPRESSED"}
    assert await admin.execute(RETRY_ALL, filter=only_suppressed) == {"count": 1}
    assert await admin.execute(RETRY_ALL, filter={"kind": kind}) == {"count": 2}
    assert await admin.execute(RETRY_ALL, filter={"kind": kind}) == {"count": 0}
    found = [await outbox.find(mail.id) for mail in [*mails, secret]]
    queued, sent = OutboxState.QUEUED, OutboxState.SENT
    assert [each and each.state for each in found] == [
        *(queued, queued, sent, queued, suppressed, failed)
    ]


async def test_organizers_see_how_many_addresses_are_undeliverable_and_a_retry_ends_that(
    auth: Auth, admin: BookingClient, organizer: BookingClient
) -> None:
    users, outbox, now = auth.repositories.users, auth.repositories.outbox, auth.now()
    before = (await organizer.execute(MARKED))["count"]
    email = f"{secrets.token_hex(6)}@school.test"
    user = await users.insert("Ben", email, Role.MEMBER, "hash", now)
    assert user is not None
    await users.set_undeliverable(user, now)
    mail = OutboxEntry(f"test:{user.id}:0", Channel.MAIL, "test", now, now, user.id)
    await outbox.insert([mail], now)
    [leased] = await outbox.lease([mail], now)
    await outbox.finish(leased, Delivery(OutboxState.SUPPRESSED, UNDELIVERABLE), now)
    marked = await organizer.execute(MARKED)
    assert marked["count"] == before + 1
    assert marked["firstAt"] <= marked["lastAt"]
    assert (await admin.execute(RETRY, id=mail.id))["entry"]["state"] == "QUEUED"
    assert (await organizer.execute(MARKED))["count"] == before


async def test_no_page_skips_entries_of_one_time(auth: Auth, organizer: BookingClient) -> None:
    outbox, now, kind = auth.repositories.outbox, auth.now(), secrets.token_hex(6)
    entries = [OutboxEntry(f"{kind}:{n}:0", Channel.MAIL, kind, now, now) for n in range(3)]
    await outbox.insert(entries, now)
    found = await organizer.all_nodes(PAGE, kind=kind)
    assert [node["id"] for node in found] == [entry.id for entry in reversed(entries)]


async def test_organizers_read_previews_in_a_language_and_of_what_exists(
    organizer: BookingClient,
) -> None:
    previews = await organizer.execute(PREVIEWS, locale="de-AT")
    assert previews[0]["subject"] == "Du hast einen Platz: Schach"
    assert previews[0]["html"].startswith("<!doctype html>")
    for name, id_ in (("slot", "slot_" + "0" * 24), ("campaign", "x")):
        [error] = (await organizer.send(PREVIEWS, **{name: id_}))["errors"]
        assert error["extensions"]["code"] == "BAD_USER_INPUT"
        assert error["extensions"]["field"] == f"{name}Id"
