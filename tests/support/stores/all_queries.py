"""Runs every query and every write of the repositories once, so that their plans can be checked."""

from dataclasses import replace
from datetime import datetime, time, timedelta

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.audit.audit_notes import AuditNote, note_campaign_deletion
from slotlock.domain.booking.booking import BookingId, MadeAs, SlotId, WaitlistEntry
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.book import BookingRequest, book
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.booking.rules.waitlist import join, leave
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext, UserContexts
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.draws.basis import DrawMethod, pseudonym_of, root_of
from slotlock.domain.draws.draw import DrawSettings, note_draw_change, open_draw, with_root
from slotlock.domain.draws.drawing import draw_places
from slotlock.domain.draws.wish_closing import SeenWishes, Wishes, close_wishes
from slotlock.domain.notifications.announcements import Announcement, Audience
from slotlock.domain.notifications.mail_kinds import RESET_PASSWORD, VERIFY_EMAIL, direct_mail
from slotlock.domain.notifications.outbox import Channel, Delivery, OutboxEntry, OutboxState
from slotlock.domain.notifications.webhook_messages import ping_message
from slotlock.domain.notifications.webhooks import (
    Webhook,
    WebhookEvent,
    WebhookSecret,
    note_webhook_change,
)
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import Period
from slotlock.domain.shared.pagination import (
    Position,
    TimeFilter,
    TimeOrder,
    TimePage,
    UpcomingPosition,
)
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.domain.teams import membership
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.domain.user_files.choices import Choices
from slotlock.domain.user_files.plan import ImportPlan, plan_import
from slotlock.domain.user_files.sync_plan import plan_sync
from slotlock.domain.user_files.user_file import NamedGuardian, UserRow
from slotlock.domain.users.identity import Identity
from slotlock.domain.users.user import Caller, MailTopic, Role, User, UserFilter, UserId
from slotlock.infrastructure.draw_records import NotBooked
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.draws.draw_repository import DueDraw
from slotlock.infrastructure.mongo.draws.wish_repository import SlotDemand
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord, IdempotencyRecords
from slotlock.infrastructure.mongo.ids import (
    new_booking_id,
    new_campaign_id,
    new_draw_id,
    new_series_id,
    new_slot_id,
    new_team_id,
    new_waitlist_entry_id,
    new_webhook_id,
)
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter
from slotlock.infrastructure.mongo.outbox.slot_changes_reader import Checkpoint, Unread
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.reads.selected_slots import SlotReadRequest
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.mongo.slots.write_set import (
    CampaignVersion,
    ResourceVersion,
    SlotWrite,
    WriteSet,
    check_written,
)
from slotlock.infrastructure.mongo.team_repository import TeamRepository
from slotlock.infrastructure.mongo.users.credentials import MailedReset
from slotlock.infrastructure.mongo.users.identities import NewIdentity, PendingSignIn
from slotlock.infrastructure.mongo.users.imports import ImportAttempt
from slotlock.infrastructure.mongo.users.privacy import Erasure, PersonalDataQueries
from slotlock.infrastructure.mongo.users.sessions import EndedAccess, NewSession, Rotation
from slotlock.services.container import utc_now
from tests.support.domain.builders import build_slot, with_facts
from tests.support.domain.campaign_builders import build_terms
from tests.support.domain.decisions import as_written, decide, expire_and_promote
from tests.support.domain.selections import EVERYTHING, NOTHING
from tests.support.stores.slots import insert_new_slots

ADA, BEN, CLEO = (UserId(digit * 24) for digit in "012")


async def insert_slots(database: Database) -> list[SlotId]:
    """Insert 60 slots of every kind, enough for an index to matter. Every second has a choice."""
    await Repositories(database).indexes.build_missing()
    ids = [new_slot_id() for _ in range(60)]
    for number, slot_id in enumerate(ids):
        kind = list(SlotKind)[number % 3]
        start = build_slot().slot.start + timedelta(hours=number)
        choice_group = None if number % 2 else f"week {number % 10}"
        times = {"start": start, "end": start + timedelta(hours=1)}
        await insert_new_slots(
            database, build_slot(1, id=slot_id, kind=kind, choice_group=choice_group, **times)
        )
    return ids


async def load_for_update(
    slots: SlotRepository, slot_id: SlotId, *booking_ids: BookingId
) -> tuple[SlotState, UserContexts]:
    """Load a slot, and the contexts of users, as a decision about Ada and Ben does."""
    query = SlotQuery(slot_id, utc_now(), [ADA, BEN], booking_ids)
    loaded = await slots.find_for_update(query)
    return loaded.slots[slot_id], loaded.users


async def write_slot(repositories: Repositories, slot_id: SlotId, team: TeamVersion) -> BookingId:
    """Write a slot in every way. Return the id of a booking that ended."""
    slots, writer, now = repositories.slots, repositories.slot_writer, utc_now()

    async def write(before: SlotState, after: SlotState, users: UserContexts) -> None:
        update = SlotWrite(before, as_written(before, after, now, users))
        assert check_written(await writer.commit(WriteSet((update,), users)))

    before, users = await load_for_update(slots, slot_id)
    booking_id = new_booking_id()
    request = BookingRequest(ADA, booking_id, ADA, hold=True)
    after, _ = decide(book, before, request, now, users=users)
    record = IdempotencyRecord(str(booking_id), "request hash", None, now)
    update = SlotWrite(before, as_written(before, after, now, users))
    assert check_written(await writer.commit(WriteSet((update,), users, (record,), (team,))))
    for user_id in (BEN, CLEO):
        before, users = await load_for_update(slots, slot_id)
        entry = WaitlistEntry(new_waitlist_entry_id(), slot_id, user_id, now)
        await write(before, decide(join, before, entry, now, users=users)[0], users)
    before, users = await load_for_update(slots, slot_id, booking_id)
    caller = Caller(ADA, Role.MEMBER, "session", now)
    after, _ = decide(cancel, before, BookingChangeRequest(before.id, booking_id, caller), now)
    promoted = expire_and_promote(after, now, users)
    await write(before, decide(leave, promoted, CLEO, now)[0], users)
    await writer.backfill_list_fields()
    await writer.set_next_deadline((await load_for_update(slots, slot_id))[0])
    return booking_id


async def run_slot_queries(repositories: Repositories, ids: list[SlotId]) -> None:
    """Read and write slots in every way."""
    slots, teams, now = repositories.slots, repositories.teams, utc_now()
    number = await teams.free_member_number(BEN)
    created = membership.create(new_team_id(), "Relay", BEN, number, now)
    assert isinstance(created, TeamSaved)
    assert await teams.insert(created.team)
    for slot_id in ids[:2]:  # one in a choice group, and one in none
        booking_id = await write_slot(repositories, slot_id, created.team.snapshot_version)
        assert await repositories.ended_bookings.find(booking_id)
        assert await repositories.idempotency_records.find(str(booking_id))
        position = Position(now, booking_id)
        assert (await repositories.ended_bookings.page_of_slot(slot_id, 1, None)).items
        await repositories.ended_bookings.page_of_slot(slot_id, 1, position)
        for selection in (NOTHING, EVERYTHING):
            assert await slots.read(SlotReadRequest(slot_id, now, selection, (ADA,)))
        await slots.find_with_roster(slot_id)
        await repositories.waitlists.find_ids(slot_id)
    # The writer searches the live and the ended bookings for a plain one that was not written.
    stale = build_slot(id=ids[1])
    after, _ = decide(book, stale, BookingRequest(ADA, new_booking_id(), ADA), now)
    update = SlotWrite(stale, as_written(stale, after, now))
    assert not check_written(await repositories.slot_writer.commit(WriteSet((update,))))
    assert await repositories.ended_bookings.find_slots_with_history(ids[:3]) == set(ids[:2])
    await slots.find_due(now, 10)
    assert await slots.find_by_users([ADA, BEN], now, now)
    assert await repositories.waitlists.find_positions([ADA], now) == {ADA: {}}
    await repositories.ended_bookings.find_waitlist_entry(new_waitlist_entry_id())
    await repositories.ended_bookings.find_waits_ended(ids, ADA)


async def run_idempotency_queries(records: IdempotencyRecords) -> None:
    """Read and write idempotency records in every way but with the changes of their commands."""
    now = utc_now()
    stored, lost = (
        IdempotencyRecord(str(new_slot_id()), "request hash", RequestLost(), now) for _ in range(2)
    )
    await records.save(stored)
    await records.save_all([stored, lost])
    await records.delete_lost(lost.record_id, lost.request_hash)
    assert [await records.find(each.record_id) for each in (stored, lost)] == [stored, None]


def time_pages(now: datetime) -> list[TimePage]:
    """Return pages of a list by time in every order, with and without a filter."""
    period = TimeFilter(starts_from=now, starts_before=now, ends_before=now)
    filters = [TimeFilter(), TimeFilter(include_past=False), period]
    after = Position(now, new_slot_id())
    over = UpcomingPosition(now, new_slot_id(), now, is_over=True)
    upcoming = replace(over, is_over=False)
    return [
        TimePage(wanted, order, 10, position, now)
        for wanted in filters
        for order in TimeOrder
        for position in (
            (None, upcoming, over) if order is TimeOrder.UPCOMING_FIRST else (None, after)
        )
    ]


async def run_list_queries(slots: SlotRepository) -> None:
    """Read lists of slots in every way."""
    now = utc_now()
    listed = build_slot(id=new_slot_id()).slot
    for order in SlotOrder:
        after = order.position_of(listed)
        for slot_filter in [
            SlotFilter(),
            SlotFilter(include_past=True),
            SlotFilter(kind=SlotKind.COURSE),
            SlotFilter(starts_from=now, starts_before=listed.end),
            SlotFilter(meets_from=listed.start, meets_before=listed.end),
            SlotFilter(resource="Room 5"),
            SlotFilter(choice_group="week 3"),
            SlotFilter(only_with_places_left=True),
            SlotFilter(bookable_only=True),
            SlotFilter(text="yog"),
            SlotFilter(text="übung 数学"),
        ]:
            await slots.page(slot_filter, order, 10, None, now, NOTHING, (ADA,))
            await slots.page(slot_filter, order, 10, after, now, EVERYTHING, (ADA,))
    await slots.count(SlotFilter(), now)
    for page in time_pages(now):
        await slots.count_of_user(ADA, page.wanted, now)
        await slots.page_of_user(ADA, page, now, EVERYTHING)
        await slots.count_of_waiting_user(ADA, page.wanted, now)
        await slots.page_of_waiting_user(ADA, page, now, NOTHING)
    await slots.find_of_user(ADA, Meeting(listed.start, listed.end), 10, now, NOTHING)


async def run_queries_of_watchers_and_reports(
    repositories: Repositories, campaign: Campaign, slot_id: SlotId
) -> None:
    """Read what subscribers watch of a campaign, and its users, in every way."""
    campaigns, users, now = repositories.campaigns, repositories.eligible_users, utc_now()
    for slot_ids in (None, [slot_id]):
        for include_hidden in (False, True):
            await campaigns.find_slot_ids(
                campaign.id, slot_ids, ends_after=now, limit=5, include_hidden=include_hidden
            )
    await campaigns.find_unfinished(now, 5)
    for terms in (campaign.terms, replace(campaign.terms, eligible_groups=())):
        await users.find(terms, 5)
        await users.find_without_password(terms, 5, now)
        await users.count_unplaced(terms, now)
    await users.find_peak(campaign.id, now)


async def run_draw_queries(repositories: Repositories) -> None:
    """Read and write wishes and draws in every way."""
    campaign_id, slot_id, now = new_campaign_id(), new_slot_id(), utc_now()
    draws, entries = repositories.draws, repositories.wishes
    own = Wishes((ADA,), (slot_id,), "salt", ADA, now)
    settings = DrawSettings(DrawMethod.ROUNDS, now)
    draw = open_draw(new_draw_id(), campaign_id, settings, CLEO, now, "seed")
    for seen in (SeenWishes(None), SeenWishes(now)):
        assert await entries.save(draw, own, [ADA], seen=seen) is None
    assert await entries.find(draw.id, ADA) == own
    assert await entries.find_wished([campaign_id], [ADA]) == {campaign_id}
    assert await entries.find_of_user(ADA) == [(draw.id, own)]
    assert await entries.find_all(draw.id) == [own]
    assert await entries.count(draw.id) == 1
    assert await entries.count_by_slot(draw, now) == [SlotDemand(slot_id, 1, 1)]
    note = note_draw_change(None, draw, CLEO, now)
    assert await draws.insert(draw, note)
    await draws.defer(draw.id, 1, "CampaignBusy", now, now)
    assert await draws.find_due(now) == [DueDraw(draw.id, now, 1)]
    terms = replace(build_terms(), campaign_id=campaign_id)
    slot, users = build_slot(1, id=slot_id, terms=terms), UserContexts({ADA: UserContext(ADA)})
    closed = close_wishes(draw, terms, [slot], users, [own], [], "salt", now)
    root = root_of(closed.basis)
    await draws.insert_basis(closed, root)
    with_basis = with_root(draw, root, 1, now)
    assert await draws.update(draw, with_basis)
    await draws.delete_other_bases(with_basis)
    assert await draws.find(draw.id) == await draws.find_latest(campaign_id) == with_basis
    assert await draws.find_all(campaign_id) == [with_basis]
    assert await draws.find_each([draw.id, new_draw_id()]) == [with_basis, None]
    assert await draws.load_basis(with_basis) == closed.basis
    (leaf,) = await draws.find_entries(with_basis)
    await draws.save_results(with_basis, draw_places(closed.basis, root, "seed"))
    assert await draws.find_result(with_basis, ADA)
    await draws.remove_users([CLEO], with_basis)
    await draws.remove_users([CLEO])
    lost = [NotBooked(leaf, pseudonym_of(own.salt, ADA), slot_id, "USER_BANNED")]
    await draws.set_written(with_basis, slot_id, lost)
    await repositories.draw_texts.insert(draw.id, root, "a text")
    assert await repositories.draw_texts.find(draw.id, root) == "a text"
    assert await draws.find_written(with_basis) == {slot_id}
    assert await draws.count_waitlisted(with_basis, slot_id) == 0
    assert await draws.find_not_booked(with_basis) == lost
    await draws.end(campaign_id, now)
    await entries.save(draw, replace(own, slot_ids=()), [ADA])
    assert await entries.find_all(draw.id) == []
    for of_draws in ([draw.id], None):
        await entries.insert(draw, [own])
        await entries.remove_user(ADA, of_draws)
        assert await entries.find_all(draw.id) == []


async def run_campaign_queries(repositories: Repositories) -> None:
    """Read and write campaigns, series and resources in every way."""
    campaigns, slots, writer = repositories.campaigns, repositories.slots, repositories.slot_writer
    campaign_id, series_id, now = new_campaign_id(), new_series_id(), utc_now()
    terms = build_terms(max_bookings=1, forbid_overlap=True, eligible_groups=(("5a",),))
    before = Campaign(campaign_id, "Spring", replace(terms, campaign_id=campaign_id))
    await campaigns.insert(before, now)
    assert await campaigns.find(before.id) == before
    assert await campaigns.find_all_slots(before.id) == []
    limits = (GroupLimit("class:*", 2),)
    first = build_slot(
        1, id=new_slot_id(), terms=before.terms, group_limits=limits, resource="Room 5"
    )
    drafts = (first, with_facts(first, resource=None, series_id=series_id))
    assert await repositories.resources.insert(Resource("Room 5"))
    for version in (1, 2):
        preconditions = (CampaignVersion(before.id, 1, ("7",)), ResourceVersion("Room 5", version))
        added = tuple(with_facts(each, id=new_slot_id()) for each in drafts)
        changes = WriteSet((), new_slots=added, preconditions=preconditions)
        assert check_written(await writer.commit(changes))
    found, users = await load_for_update(slots, added[0].id)
    request = BookingRequest(ADA, new_booking_id(), CLEO, made_as=MadeAs.ORGANIZER)
    after, _ = decide(book, found, request, now, users=users)
    update = SlotWrite(found, as_written(found, after, now, users))
    assert check_written(await writer.commit(WriteSet((update,), users)))
    await load_for_update(slots, added[1].id)
    edited = replace(before, terms=replace(before.terms, version=2))
    assert await campaigns.update(before, edited, now)
    assert await campaigns.find_pending(now + timedelta(minutes=1)) == [edited]
    await campaigns.propagate_terms(edited, now)
    await campaigns.warm_cache(edited)
    assert await campaigns.find_numbered(before.id, "7") is None
    states = await campaigns.find_slots(before.id, now)
    assert len(states) == 4
    known = await campaigns.find_bookings(before.id, [each.slot for each in states], [ADA], now)
    assert set(known) == {ADA}
    assert await campaigns.has_slots(before.id)
    await run_queries_of_watchers_and_reports(repositories, before, added[0].id)
    assert not await campaigns.delete(edited, note_campaign_deletion(edited, ADA, now))
    deleted, _ = await load_for_update(slots, added[1].id)
    assert check_written(await writer.commit(WriteSet((), deleted_slots=(deleted,))))
    for page in time_pages(now):
        for include_unpublished in (True, False):
            await campaigns.page(page, include_unpublished=include_unpublished)
    start, end = first.slot.start, first.slot.end
    assert await repositories.resources.find_overlapping(["Room 5"], start, end)
    assert await repositories.resources.count("", None, 10) == 1
    for text, kind in (("", ResourceKind.OTHER), ("room", None), ("room", ResourceKind.OTHER)):
        assert await repositories.resources.count(text, kind, 10) == 1
        assert (await repositories.resources.page(text, kind, 10, None)).items
    assert await repositories.resources.rename("Room 5", Resource("Room 6"), ADA, now)
    led = Resource("Room 6", ResourceKind.STAFF, ADA)
    assert await repositories.resources.update(led, ADA, now)
    assert await repositories.resources.find_led(ADA) == ["Room 6"]
    assert await repositories.resources.find_led_slots(ADA, [added[0].id], now)
    bookable = UserFilter("ada", banned=False, group_patterns=("5a", "6*"))
    await repositories.users.page(bookable, 10, None)
    led_by_ada = SlotFilter(led_by=ADA, led_resources=("Room 6",), include_past=True)
    await slots.page(led_by_ada, SlotOrder.START_ASC, 10, None, now, NOTHING, (ADA,))
    await repositories.resources.remove_leader(ADA)
    assert await slots.find_by_series(series_id, now)
    for include_hidden in (False, True):
        for page in time_pages(now):
            await slots.count_of_series(series_id, page.wanted, now, include_hidden=include_hidden)
            await slots.page_of_series(series_id, page, now, NOTHING, include_hidden=include_hidden)
    await repositories.waitlists.find_waiting([ADA])
    for slot_filter in (SlotFilter(campaign_id=before.id), SlotFilter(series_id=series_id)):
        await slots.page(slot_filter, SlotOrder.START_ASC, 10, None, now, NOTHING)


async def run_user_queries(repositories: Repositories) -> None:
    """Read and write users and their sessions in every way."""
    users, sessions, now = repositories.users, repositories.sessions, utc_now()
    email = f"{new_slot_id()}@slotlock.test"
    user = await users.insert("Ada", email, Role.MEMBER, "hash", now)
    assert user is not None
    await users.find_with_password_hash(email)
    await users.find_many([user.id])
    await users.find_dependents([user.id])
    await users.remove_guardian(user.id)
    assert [found async for found in users.find_all()]
    assert await repositories.account_admin_writer.set_role(user.id, Role.ADMIN, None, now)
    await users.set_groups(user.id, ["5a"], None, now)
    for locale in ("de", None):
        await users.set_preferences(user.id, locale, {MailTopic.REMINDERS: locale is None})
    for since in (now, None):
        await users.set_undeliverable(user, since)
        assert (await users.count_undeliverable()).count == (1 if since else 0)
    await users.clear_undeliverable([user.id])
    await repositories.waitlist_groups.sync_pending(now + timedelta(minutes=1), now)
    tomorrow = now + timedelta(days=1)
    vouched_for, claimed = [
        await users.insert(
            name, f"{new_slot_id()}@slotlock.test", Role.MEMBER, "hash", now, self_registered=True
        )
        for name in ("Ben", "Eve")
    ]
    assert vouched_for is not None
    assert claimed is not None
    assert await repositories.account_admin_writer.vouch(vouched_for, ADA, now)
    assert await repositories.account_claims.lock(claimed)
    assert await repositories.account_claims.invite(claimed, "claimed", tomorrow, ADA, now)
    opened = await sessions.open(NewSession(user.id, "first", now, tomorrow, "a browser", "hash"))
    assert opened is not None
    session_id, _ = opened
    assert await sessions.find_role(session_id)
    assert await sessions.find_roles([session_id])
    assert await sessions.find_open(user.id, now)
    assert not await sessions.was_opened_at_provider(session_id, now)
    recently = now - timedelta(seconds=1)
    for new_id in ("second", "unused"):
        rotation = Rotation(new_id, now)
        rotated = await sessions.rotate_refresh_token(
            session_id, "first", rotation, tomorrow, recently, recently
        )
        assert rotated == Rotation("second", now)
        await sessions.mark_answered(session_id, "second", now)
    assert await repositories.password_writer.find_hash(user.id) == "hash"
    changed = await repositories.password_writer.update(
        user.id, session_id, "hash", "new", end_links_since=now, now=now
    )
    assert changed == EndedAccess(0)
    mail = direct_mail(VERIFY_EMAIL, user.id, "1", now, user_id=user.id, expires_at=tomorrow)
    verifications, new_email = repositories.email_verifications, f"new.{user.login_name}"
    assert await verifications.save(user, new_email, "code", mail, now)
    assert await verifications.find(user.id, "code", now)
    assert await verifications.find_waiting(user, now) is None
    verified = await verifications.verify(user, new_email, "code", [], now)
    assert isinstance(verified, User)
    mail = direct_mail(RESET_PASSWORD, user.id, "1", now, user_id=user.id, expires_at=tomorrow)
    assert verified.email
    reset = MailedReset(user.id, verified.email, f"reset {user.id}", mail)
    await repositories.invitations.save_mailed_resets([reset], now)
    assert await repositories.invitations.find(f"reset {user.id}", now)
    await run_sign_on_queries(repositories, verified)
    assert await sessions.end_others(user.id, session_id) == 0
    await sessions.end(session_id)
    # The user is an admin by now, so that a ban of the member finds no user.
    assert await repositories.bans.ban(user, user.id, None, now) is None
    assert await repositories.bans.ban_unless_last_admin(user, None, now) is None
    (user,) = (await users.find_many([user.id])).values()
    banned = await repositories.bans.ban(user, user.id, "Loud", now)
    assert banned is not None
    assert await repositories.bans.find_banned_since(now - timedelta(minutes=1), 10)
    assert await repositories.bans.unban(banned, user.id, now)
    await users.backfill_list_fields()


async def run_privacy_queries(database: Database) -> None:
    """Export and erase the data of a user in every way."""
    repositories, now = Repositories(database), utc_now()
    email, erasures = f"{new_slot_id()}@slotlock.test", repositories.erasures
    user = await repositories.users.insert("Dora", email, Role.MEMBER, "hash", now)
    assert user is not None
    sections = PersonalDataQueries(database).sections(user.id)
    found = {name: [each async for each in read()] for name, read in sections}
    assert found["account"]
    erasure = await erasures.erase_account(user.id, None, now)
    assert isinstance(erasure, Erasure)
    assert await erasures.find_unfinished(10)
    assert await erasures.find_cancellable(user.id, now) == []
    await erasures.erase_details(user.id)
    await erasures.set_checked(erasure, now)
    await erasures.delete(erasure)


async def run_sign_on_queries(repositories: Repositories, user: User) -> None:
    """Sign in at a provider, link and unlink in every way."""
    identities, now, number = repositories.identities, utc_now(), new_slot_id()
    soon = now + timedelta(minutes=10)
    pending = PendingSignIn("school", "nonce", "verifier", "challenge", "https://a.test", soon)
    await identities.save_pending(number, pending)
    assert await identities.take_pending(number, now) == pending
    issuer, email = "https://login.slotlock.test", f"{number}@slotlock.test"
    new = NewIdentity(Identity(issuer, number), email, email_verified=False, at=now)
    member = await identities.insert_user("Ada", email, new)
    assert member is not None
    assert await identities.find_user(new.identity) == member
    verified = NewIdentity(Identity(issuer, f"{number} 2"), email, email_verified=True, at=now)
    assert await identities.link(member, verified, by_address=True)
    other = replace(verified, identity=Identity(issuer, f"{number} 3"))
    assert await identities.link(user, other, by_address=False)
    await identities.note_sign_in(member, verified)
    assert len(await identities.find_all(member.id)) == 1  # of a claimed account
    for subject, session_id in ((number, None), (None, "sid"), (number, "sid")):
        token_hash = f"{subject} {session_id} {number}"
        assert (
            await identities.end_sessions_once(token_hash, soon, issuer, subject, session_id) == []
        )
    assert (await identities.find_many([member.id])).keys() == {member.id}
    own, caller = verified.identity, Caller(member.id, Role.MEMBER, "session", soon)
    assert not await identities.unlink(member.id, own, caller, now, may_be_last=False)
    assert await identities.unlink(member.id, own, caller, now, may_be_last=True)


async def run_user_import_queries(repositories: Repositories) -> None:
    """Import, invite and search for users in every way."""
    imports, invitations, now = repositories.user_imports, repositories.invitations, utc_now()
    number = new_slot_id()
    emails = [f"{number}.{letter}@slotlock.test" for letter in "abc"]
    issuer = "https://login.slotlock.test"
    led, parent = Resource(f"Staff {number}", ResourceKind.STAFF), f"{number}.p@slotlock.test"
    assert await repositories.resources.insert(led)
    for groups, subjects in ((("5a",), "xy "), (("5b",), "yx ")):
        guardians = (NamedGuardian(parent),) if groups == ("5a",) else ()
        named = {
            email: Identity(issuer, f"{number} {subject}")
            for email, subject in zip(emails, subjects, strict=True)
            if subject.strip()
        }
        snapshot = await imports.load_snapshot(
            [*emails, parent], list(named.values()), with_dependents=True, with_resources=True
        )
        rows = [UserRow(2, each, "Ada", groups, None, named.get(each)) for each in emails]
        rows[0] = replace(rows[0], line=3, guardians=guardians, leads=(led.name,) * len(guardians))
        users, linked, resources = snapshot.users_by_login_name, snapshot.linked, snapshot.resources
        plan = plan_import(rows, users, linked=linked, resources=resources)
        assert isinstance(plan, ImportPlan)
        assert (len(plan.leaders), plan.links_added + plan.links_removed) == (1, 1)
        assert await imports.commit(plan, snapshot, now) is ImportAttempt.WRITTEN
    for names, back in ((emails, 0), (emails[:1], 0), (emails, 2)):
        snapshot = await imports.load_snapshot(names, with_managed=True)
        rows = [UserRow(2, email, "Ada", None) for email in names]
        users, bans = snapshot.users_by_login_name, snapshot.banned_by_sync
        plan = plan_sync(rows, users, snapshot.managed, bans, choices=Choices(), bans_gone=True)
        assert isinstance(plan, ImportPlan)
        assert plan.membership is not None
        assert len(plan.membership.returned) == back
        assert await imports.commit(plan, snapshot, now) is ImportAttempt.WRITTEN
        await imports.find_leavers(names, ["5a"])
        await imports.find_groups()
        await imports.find_future_bookings(plan.membership.gone, now)
    for group, after in ((None, None), ("5b", None), (None, emails[0]), ("5b", emails[0])):
        await invitations.find_invitable(group, list(Role), 10, after, mailed_before=now)
        invitable = await invitations.find_invitable(group, list(Role), 10, after)
    hashes = {f"{user.id} {number}": user for user in invitable}
    invited_ids = await invitations.save(hashes, list(Role), now + timedelta(days=1))
    assert invited_ids == {user.id for user in invitable}
    await invitations.forget_mail(invitable[0].id, now)
    assert await invitations.find_mailed_at(invitable[0].id) is None
    token_hash = next(iter(hashes))
    assert await invitations.find(token_hash, now) == invitable[0]
    assert await invitations.redeem(token_hash, "hash", now)
    for user_filter in (
        UserFilter(),
        UserFilter(text="ada"),
        UserFilter(text="ada slotl"),
        UserFilter(text="!"),
        UserFilter(text="übung 数学"),
        UserFilter(group="5b"),
        UserFilter(group="5b, 6a"),
        UserFilter(banned=True),
        UserFilter(banned=False),
        UserFilter(without_password=True),
        UserFilter(without_password=False),
        UserFilter(self_registered=True),
        UserFilter(self_registered=False),
        UserFilter("ada", "5b", banned=False, without_password=True),
        UserFilter(eligible_groups=()),
        UserFilter("ada", "5b", without_password=True, eligible_groups=(("5a",), ("6a",))),
    ):
        for position in (None, emails[0]):
            await repositories.users.page(user_filter, 10, position)
    for name in (None, "5a"):
        await repositories.users.page_of_groups(10, name)


async def run_outbox_queries(repositories: Repositories, slot_ids: list[SlotId]) -> None:
    """Read and write the outbox, and what its reader reads, in every way."""
    outbox, changes, now = repositories.outbox, repositories.slot_changes, utc_now()
    entry = OutboxEntry("booked:a:1", Channel.MAIL, "booked", now, now, ADA, group="user:a")
    other = replace(entry, id="booked:b:1", due_at=now + timedelta(minutes=1))
    assert await outbox.insert([entry, other], now) == 2
    assert await outbox.insert([entry], now) == 0
    (due,) = (e for e in await outbox.find_due(Channel.MAIL, now, 10) if e.id == entry.id)
    [entries] = await outbox.lease([due], now)
    assert len(entries) == 2
    delivery = Delivery(OutboxState.QUEUED, "451")
    assert await outbox.finish(entries, delivery, now) is OutboxState.QUEUED
    assert await outbox.retry(entry.id, now)
    for chosen in (OutboxFilter(), OutboxFilter(user_id=ADA), OutboxFilter(about_id=ADA)):
        assert await outbox.find_unsent(chosen, 10) == []
    assert await outbox.retry_all([entry.id], now) == 0
    assert await outbox.find_note("451") == "451"
    assert await outbox.find(entry.id)
    assert await outbox.count_unsent()
    assert await outbox.find_oldest()
    for position in (None, Position(now, entry.id)):
        for outbox_filter in (
            OutboxFilter(),
            OutboxFilter(OutboxState.QUEUED, Channel.MAIL),
            OutboxFilter(user_id=ADA),
            OutboxFilter(about_id=ADA),
            OutboxFilter(slot_id=slot_ids[0]),
            OutboxFilter(OutboxState.FAILED, kind="booked", since=now),
        ):
            await outbox.page(outbox_filter, 10, position)
            await outbox.count(outbox_filter, 10)
    await changes.save_checkpoint(Channel.MAIL, Checkpoint(now, now))
    assert await changes.load_checkpoint(Channel.MAIL, now) == Checkpoint(now, now)
    assert await changes.read(slot_ids, now - timedelta(minutes=1))
    await changes.begin(Channel.WEBHOOK, now)
    assert await changes.read_site(now - timedelta(minutes=1), now)
    await changes.record_unread(Channel.MAIL, unread := Unread("slot_a", "KeyError()", now))
    assert await changes.find_unread(now) == [unread]
    await run_optional_mail_queries(repositories, slot_ids)


async def run_webhook_queries(repositories: Repositories) -> None:
    """Read and write webhooks and their deliveries in every way."""
    webhooks, now = repositories.webhooks, utc_now()
    events = (WebhookEvent.BOOKING_CONFIRMED,)
    id_, secret = new_webhook_id(), WebhookSecret("whsec_")
    webhook = Webhook(id_, "https://a.test/", events, None, ADA, now, now, (secret,))
    note = note_webhook_change(None, webhook, NoteAction.WEBHOOK_CREATED, ADA, now)
    assert await webhooks.insert(webhook, note)
    assert not await webhooks.insert(webhook, note)
    assert await webhooks.update(webhook, webhook, note)
    assert await webhooks.find(id_) == webhook
    assert webhook in await webhooks.find_all()
    assert webhook in await webhooks.find_all(enabled_only=True)
    entry = ping_message(now, "a").to_entry(webhook)
    await repositories.outbox.insert([entry], now)
    for full, due in (([], [entry]), ([new_webhook_id()], [entry]), ([id_], [])):
        assert await repositories.outbox.find_due_by_webhook(now, full, 1) == due
    await webhooks.record_response(entry.id, now, 500, 9)
    assert await webhooks.queue_again(entry.id, now)
    for position in (None, Position(now, entry.id)):
        await webhooks.page_deliveries(id_, 10, position)
    assert await webhooks.record_failure(id_, now)
    await webhooks.record_success(id_)
    assert await webhooks.disable(id_, "410", now)
    assert await webhooks.delete(id_, note)


async def run_optional_mail_queries(repositories: Repositories, slot_ids: list[SlotId]) -> None:
    """Read and write what reminders, mails about openings and announcements need."""
    scheduled, announcements = repositories.scheduled_mails, repositories.announcements
    now, terms = utc_now(), build_terms(opening_mail_hours=1, eligible_groups=(("5a",),))
    period = Meeting(now - timedelta(days=9999), now)
    await scheduled.save_checkpoint(now)
    assert await scheduled.load_checkpoint() == now
    assert await scheduled.find_slots(period, now) == []
    assert len(await scheduled.find_with_bookings(slot_ids[:2])) == 2
    assert await scheduled.find_openings(period, now) == []
    for each in (terms, replace(terms, eligible_groups=())):
        async for _ in repositories.eligible_users.find_recipients(each):
            pass
    for audience in (
        Audience(slot_ids[0], None, with_waiting=True),
        Audience(None, CampaignId("c" * 24)),
    ):
        await announcements.find_users(audience, now)
        sent = Announcement(new_slot_id(), "hash", now, ADA, audience, "Yoga", "Pool", "Text")
        assert await announcements.insert(sent)
        assert not await announcements.insert(sent)
        assert await announcements.find(sent.id) == sent
        assert await announcements.find_unfinished(now - timedelta(days=1), now) == [sent]
        note = AuditNote(now, ADA, NoteAction.ANNOUNCEMENT_SENT, ())
        await announcements.finish(sent, 1, note)
    for by in (ADA, None):
        assert await announcements.find_nth_newest(by, now - timedelta(hours=1), 2) == now


async def run_team_queries(teams: TeamRepository) -> None:
    """Read and write teams in every way."""
    now = utc_now()
    number = await teams.free_member_number(ADA)
    created = membership.create(new_team_id(), "Relay", ADA, number, now)
    assert isinstance(created, TeamSaved)
    before = created.team
    assert await teams.insert(before)
    assert await teams.find(before.id) == before
    email = f"{before.id}@slotlock.test"
    invitation_number = await teams.free_invitation_number(email)
    after = membership.invite(before, ADA, email, {}, invitation_number, now).team
    assert after is not None
    assert await teams.update(before, after)
    assert await teams.find_by_user(ADA) == await teams.find_by_invited_email(email) == (after,)
    assert await teams.find_by_invited_user(UserId("1" * 24), email) == (after,)
    assert await teams.find_teammates(ADA, [UserId("1" * 24)]) == (frozenset(), ())
    assert await teams.delete(after)


async def run_all_queries(database: Database) -> None:
    """Run every query and every write."""
    repositories = Repositories(database)
    ids = await insert_slots(database)
    await repositories.indexes.build_missing()
    await run_slot_queries(repositories, ids)
    await run_idempotency_queries(repositories.idempotency_records)
    await run_list_queries(repositories.slots)
    await run_campaign_queries(repositories)
    await run_draw_queries(repositories)
    await run_user_queries(repositories)
    await run_user_import_queries(repositories)
    await run_team_queries(repositories.teams)
    await run_outbox_queries(repositories, ids)
    await run_webhook_queries(repositories)
    await run_privacy_queries(database)
    await repositories.site_values.update({"name": "School"}, ADA, utc_now())
    await repositories.site_values.find()
    await repositories.site_values.find_logo()
    await repositories.period_list.save([Period("3", time(10, 5), time(10, 50))], ADA, utc_now())
    assert await repositories.period_list.find()
    await repositories.period_list.count_future_slots(utc_now(), lambda *_: True)
