"""Erasing a user: what vanishes, what stays, and what a crash or a race cannot leave behind."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from bson.json_util import dumps

from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.notifications.mail_kinds import TEST, direct_mail
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.domain.users.account_admin_rules import LastAdmin
from slotlock.domain.users.user import Caller, MailTopic, Role, User, UserId
from slotlock.infrastructure.mongo.users.privacy import Erasure
from slotlock.infrastructure.mongo.users.user_documents import to_new_document
from slotlock.services import teams
from slotlock.services.booking import book, waitlist
from slotlock.services.erasure import RECENT_REQUESTS, finish_erasure, finish_erasures
from tests.support.model.checker import ModelChecker, SlotShape
from tests.support.model.service_pair import ServicePair
from tests.support.stores.users import new_email

NAME = "Grace Unforgettable"


@pytest.fixture
def member(pair: ServicePair) -> Caller:
    """Return a new member, as the caller of a request that is already authenticated."""
    user = to_new_document(NAME, new_email(), Role.MEMBER, "hash", pair.clock())
    pair.database["users"].insert_one({**user, "groups": ["Grade 5"]})
    now = pair.clock()
    return Caller(str(user["_id"]), Role.MEMBER, "session", now)  # type: ignore[arg-type]


def add_slot(pair: ServicePair, **shape: Any) -> SlotId:
    """Create a slot that starts later."""
    return SlotId(ModelChecker(pair).add_slot(SlotShape(**shape)))


def book_for(pair: ServicePair, caller: Caller, slot_id: SlotId) -> None:
    """Book a place for the caller, which has to succeed."""
    booking = book.book_slot(
        pair.services[0], caller, slot_id, caller.user_id, book.BookingOptions()
    )
    assert isinstance(pair.runner.run(booking).outcome, Booked)


def erase_account(pair: ServicePair, member: Caller) -> Erasure:
    """Run the first transaction of an erasure only, as if the process had died after it."""
    services = pair.services[0]
    erased = pair.runner.run(
        services.erasures.erase_account(member.user_id, pair.callers[0].user_id, services.now())
    )
    assert isinstance(erased, Erasure)
    return erased


def bookers(pair: ServicePair, slot_id: SlotId) -> list[str]:
    """Return the users with a place in a slot."""
    document = pair.database["slots"].find_one({"_id": ObjectId(slot_id)})
    assert document is not None
    return [str(booking["user"]) for booking in document["bookings"]]


def sweep(pair: ServicePair) -> None:
    """Continue the erasures, as the hold sweeper of another process does."""
    pair.runner.run(finish_erasures(pair.services[1]))


def test_future_bookings_are_cancelled_and_their_places_go_to_the_waiting_list(
    pair: ServicePair, member: Caller
) -> None:
    slot_id, waiting = add_slot(pair), pair.callers[1]
    book_for(pair, member, slot_id)
    pair.runner.run(waitlist.join(pair.services[0], slot_id, waiting.user_id, 0.0))
    pair.runner.run(finish_erasure(pair.services[0], erase_account(pair, member)))
    assert bookers(pair, slot_id) == [waiting.user_id]


def test_a_past_booking_still_counts_without_a_name(pair: ServicePair, member: Caller) -> None:
    slot_id = add_slot(pair)
    book_for(pair, member, slot_id)
    past = pair.clock() - timedelta(hours=2)
    times = {"start": past, "end": past + timedelta(hours=1)}
    pair.database["slots"].update_one({"_id": ObjectId(slot_id)}, {"$set": times})
    pair.runner.run(finish_erasure(pair.services[0], erase_account(pair, member)))
    assert bookers(pair, slot_id) == [member.user_id]
    user = pair.runner.run(pair.services[0].users.find_many([member.user_id]))[member.user_id]
    assert (user.name, user.groups, user.erased) == ("Erased user", (), True)


def test_which_mails_a_user_wants_and_what_waits_to_be_sent_is_erased(
    pair: ServicePair, member: Caller
) -> None:
    services, run, user = pair.services[0], pair.runner.run, ObjectId(member.user_id)
    refused = {MailTopic.REMINDERS: False}
    assert run(services.users.set_preferences(member.user_id, "de", refused, "030 1234"))
    mail = direct_mail(TEST, member.user_id, "1", pair.clock(), user_id=member.user_id)
    run(services.outbox.insert([mail], pair.clock()))
    run(finish_erasure(services, erase_account(pair, member)))
    [stored] = pair.database["users"].find({"_id": user})
    assert {"refusedTopics", "locale", "phone"} & stored.keys() == set()
    assert pair.database["outbox"].find_one({"user": user}) is None
    assert run(services.users.set_preferences(member.user_id, "de", refused)) is None


def test_an_erased_user_leads_no_slots(pair: ServicePair, member: Caller) -> None:
    resources, run = pair.services[0].resources, pair.runner.run
    led = Resource(f"Berg {member.user_id}", ResourceKind.STAFF, member.user_id)
    run(resources.insert(led))
    run(finish_erasure(pair.services[0], erase_account(pair, member)))
    assert run(resources.find_led(member.user_id)) == []


def test_no_ticket_of_an_erased_user_is_found(pair: ServicePair, member: Caller) -> None:
    services, run = pair.services[0], pair.runner.run
    ref = TicketRef(add_slot(pair), member.user_id, "0" * 32, "0" * 16, pair.clock())
    since = pair.clock() - timedelta(minutes=1)

    async def add() -> None:
        services.ticket_index.add(ref)

    run(add())
    assert len(run(services.ticket_index.find(member.user_id, since))) == 1
    run(finish_erasure(services, erase_account(pair, member)))
    assert run(services.ticket_index.find(member.user_id, since)) == []


def test_the_wishes_of_an_erased_user_end_and_those_of_teammates_stay(
    pair: ServicePair, member: Caller
) -> None:
    own, other = ObjectId(member.user_id), ObjectId()
    wishes = pair.database["draw_wishes"]
    draws = [ObjectId(), ObjectId()]
    wishes.insert_one({"draw": draws[0], "users": [own]})
    wishes.insert_one({"draw": draws[1], "users": [own, other]})
    pair.runner.run(finish_erasure(pair.services[0], erase_account(pair, member)))
    of_both = {"draw": {"$in": draws}}
    assert [each["users"] for each in wishes.find(of_both)] == [[other]]


def test_an_erasure_that_still_found_a_booking_is_checked_once_more(
    pair: ServicePair, member: Caller
) -> None:
    slot_id, unfinished = add_slot(pair), {"_id": ObjectId(member.user_id)}
    erase_account(pair, member)
    pair.clock.advance(RECENT_REQUESTS + timedelta(seconds=1))
    book_for(pair, member, slot_id)
    for is_unfinished in (True, False):
        sweep(pair)
        assert (pair.database["erasures"].find_one(unfinished) is not None) is is_unfinished


def test_no_collection_contains_the_name_or_the_address_after_a_finished_erasure(
    pair: ServicePair, member: Caller
) -> None:
    slot_id = add_slot(pair)  # which deletes all but the users
    services, run = pair.services[0], pair.runner.run
    email = run(services.users.find_many([member.user_id]))[member.user_id].login_name
    run(services.users.set_groups(member.user_id, ["Choir"], pair.callers[0].user_id, pair.clock()))
    edits: list[dict[str, Any]] = [
        {"field": "name", "before": None, "after": NAME, "user": ObjectId(member.user_id)},
        {"field": "name", "before": "x", "after": "Other", "user": ObjectId()},
    ]
    users = [edit["user"] for edit in edits]
    note = {"at": pair.clock(), "by": None, "action": "users_imported"}
    pair.database["audit_notes"].insert_one({**note, "edits": edits, "users": users})
    own = run(teams.create(services, "Own", member.user_id))
    inviting = run(teams.create(services, "Inviting", pair.callers[2].user_id))
    assert isinstance(own, TeamSaved)
    assert isinstance(inviting, TeamSaved)
    run(teams.invite(services, inviting.team.id, email, pair.callers[2].user_id))
    book_for(pair, pair.callers[1], slot_id)
    run(waitlist.join(services, slot_id, member.user_id, 0.0))
    erase_account(pair, member)
    sweep(pair)
    pair.clock.advance(RECENT_REQUESTS + timedelta(seconds=1))
    sweep(pair)
    stored = [
        dumps(document)
        for name in pair.database.list_collection_names()
        for document in pair.database[name].find()
    ]
    assert [text for text in stored if NAME in text or email in text or "Choir" in text] == []
    assert any("Other" in text for text in stored)
    assert pair.database["teams"].find_one({"_id": ObjectId(own.team.id)}) is None
    assert pair.database["slots"].find_one({"waitlist.user": ObjectId(member.user_id)}) is None


def test_an_invitation_to_a_former_address_ends_unless_somebody_else_has_it_now(
    pair: ServicePair, member: Caller
) -> None:
    services, run, by = pair.services[0], pair.runner.run, pair.callers[2].user_id
    user = run(services.users.find_many([member.user_id]))[member.user_id]
    first, second, last = user.login_name, new_email(), new_email()
    for login_name in (second, last):
        updating = services.account_admin_writer.update(
            user, NAME, login_name, None, (), by, pair.clock()
        )
        updated = run(updating)
        assert isinstance(updated, User)
        user = updated
    pair.database["users"].insert_one(
        to_new_document("Other", second, Role.MEMBER, "hash", pair.clock())
    )
    team = run(teams.create(services, "Inviting", by))
    assert isinstance(team, TeamSaved)
    for login_name in (first, second):  # after the change: neither is that of the member now
        run(teams.invite(services, team.team.id, login_name, by))
    assert run(teams.list_invitations(services, member.user_id)) == []
    erase_account(pair, member)
    sweep(pair)
    found = run(services.teams.find(team.team.id))
    assert found is not None
    assert [each.email for each in found.invitations] == [second]
    pair.clock.advance(RECENT_REQUESTS + timedelta(seconds=1))
    sweep(pair)
    assert first not in dumps(
        [[*pair.database[name].find()] for name in pair.database.list_collection_names()]
    )


def test_an_erasure_that_died_after_its_first_write_is_finished_by_another_process(
    pair: ServicePair, member: Caller
) -> None:
    slot_id = add_slot(pair)
    book_for(pair, member, slot_id)
    erasure = erase_account(pair, member)
    assert bookers(pair, slot_id) == [member.user_id]
    sweep(pair)
    assert bookers(pair, slot_id) == []
    assert erase_account(pair, member) == erasure, "erasing again continues the same erasure"


def test_a_booking_that_is_written_after_the_erasure_does_not_survive_it(
    pair: ServicePair, member: Caller
) -> None:
    slot_id = add_slot(pair)
    pair.runner.run(finish_erasure(pair.services[0], erase_account(pair, member)))
    book_for(pair, member, slot_id)
    assert bookers(pair, slot_id) == [member.user_id], "control: one pass does not see it"
    sweep(pair)
    assert bookers(pair, slot_id) == []


def test_the_last_admin_is_not_erased(pair: ServicePair) -> None:
    services = pair.services[0]
    pair.database["users"].update_many({"role": "admin"}, {"$set": {"role": "organizer"}})
    admin = to_new_document("Root", new_email(), Role.ADMIN, "hash", pair.clock())
    pair.database["users"].insert_one(admin)
    user_id = UserId(str(admin["_id"]))
    erased = services.erasures.erase_account(user_id, None, pair.clock())
    assert pair.runner.run(erased) == LastAdmin(user_id)
