"""Erasing a child or a guardian: who acts for whom ends, and so do the mails about the child."""

from collections.abc import Awaitable, Callable
from operator import attrgetter

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.notifications.mail_kinds import TEST, direct_mail
from slotlock.domain.notifications.outbox import LEASE, Channel, OutboxEntry
from slotlock.domain.resources.resource import Resource, ResourceKind
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.users.user_documents import to_new_document
from slotlock.services import erasure, teams
from slotlock.services.booking import waitlist
from slotlock.services.erasure import finish_erasure
from tests.services.users.test_erasure import (
    add_slot,
    book_for,
    bookers,
    erase_account,
    member,
    sweep,
)
from tests.support.model.checker import ModelChecker, SlotShape
from tests.support.model.service_pair import ServicePair
from tests.support.stores.users import new_email

__all__ = ["member"]
# Where a user may be named whose erasure is not finished.
NAMED: dict[str, tuple[str, str]] = {
    "booking": ("slots", "bookings.user"),
    "waitlist entry": ("slots", "waitlist.user"),
    "team": ("teams", "members.user"),
    "lead": ("resources", "leader"),
    "dependent": ("users", "guardians"),
    "wishes": ("draw_wishes", "users"),
    "mail": ("outbox", "user"),
    "mail of a guardian": ("outbox", "dependents"),
}
STEPS = {
    "cancel_places": {"booking", "waitlist entry"},
    "teams.remove_user": {"team"},
    "services.resources.remove_leader": {"lead"},
    "services.users.remove_guardian": {"dependent"},
    "services.wishes.remove_user": {"wishes"},
    "services.draws.remove_users": set[str](),
    "services.erasures.erase_details": {"mail", "mail of a guardian"},
}


class KilledError(Exception):
    """The process ends here."""


def add_dependent(pair: ServicePair, *guardians: str) -> Caller:
    """Return a new child of these guardians."""
    user = to_new_document("Mia", new_email(), Role.MEMBER, "hash", pair.clock())
    ids = [ObjectId(each) for each in guardians]
    pair.database["users"].insert_one({**user, "guardians": ids})
    return Caller(UserId(str(user["_id"])), Role.MEMBER, "session", pair.clock())


def add_mail(pair: ServicePair, user_id: str, *dependents: str) -> str:
    """Queue a mail, perhaps about children of its reader, and return its id."""
    mail = direct_mail(
        TEST, UserId(user_id), str(ObjectId()), pair.clock(), user_id=UserId(user_id)
    )
    pair.runner.run(pair.services[0].outbox.insert([mail], pair.clock()))
    about = {"dependents": [ObjectId(each) for each in dependents]} if dependents else {}
    pair.database["outbox"].update_one({"_id": mail.id}, {"$set": {"data": {}, **about}})
    return mail.id


def document_of(pair: ServicePair, user: Caller) -> Document:
    """Return the stored document of a user."""
    found = pair.database["users"].find_one({"_id": ObjectId(user.user_id)})
    assert found is not None
    return found


def named(pair: ServicePair, user: Caller) -> set[str]:
    """Return where a user is named."""
    return {
        what
        for what, (collection, path) in NAMED.items()
        if pair.database[collection].find_one({path: ObjectId(user.user_id)})
    }


def test_with_a_child_the_mails_about_it_end_and_those_about_its_sibling_stay(
    pair: ServicePair, member: Caller
) -> None:
    child, sibling = (add_dependent(pair, member.user_id) for _ in range(2))
    add_mail(pair, member.user_id, child.user_id)
    own = add_mail(pair, member.user_id)
    others = [
        add_mail(pair, member.user_id, *(each.user_id for each in children))
        for children in ((sibling,), (child, sibling))
    ]
    pair.runner.run(finish_erasure(pair.services[0], erase_account(pair, child)))
    left = pair.database["outbox"].find({"user": ObjectId(member.user_id)})
    about = [ObjectId(sibling.user_id)]
    found = {each["_id"]: each.get("dependents") for each in left}
    assert found == {own: None, **dict.fromkeys(others, about)}
    # A request that began before the erasure links the guardian again.
    change = {"$set": {"guardians": [ObjectId(member.user_id)]}}
    pair.database["users"].update_one({"_id": ObjectId(child.user_id)}, change)
    sweep(pair)
    assert "guardians" not in document_of(pair, child)
    assert document_of(pair, sibling)["guardians"] == [ObjectId(member.user_id)]


def test_a_mail_about_a_sibling_is_sent_although_it_waited_with_one_about_an_erased_child(
    pair: ServicePair, member: Caller
) -> None:
    outbox, run = pair.services[0].outbox, pair.runner.run
    child, sibling = (add_dependent(pair, member.user_id) for _ in range(2))
    ids = [add_mail(pair, member.user_id, each.user_id) for each in (child, sibling)]
    group = {"$set": {"group": f"user:{member.user_id}"}}
    pair.database["outbox"].update_many({"_id": {"$in": ids}}, group)

    def find_due() -> list[OutboxEntry]:
        due = run(outbox.find_due(Channel.MAIL, pair.clock(), 1000))
        return [each for each in due if each.id in ids]

    lead = next(each for each in find_due() if each.id == ids[0])
    [[_, follower]] = run(outbox.lease([lead], pair.clock()))
    assert follower.id == ids[1]
    pair.runner.run(finish_erasure(pair.services[0], erase_account(pair, child)))
    pair.clock.advance(LEASE)
    (due,) = find_due()
    assert (due.id, due.lead_id) == (ids[1], None)
    [[sent]] = run(outbox.lease([due], pair.clock()))
    assert sent.id == ids[1]


def test_the_places_and_the_other_guardian_of_children_stay_without_their_guardian(
    pair: ServicePair, member: Caller
) -> None:
    other = pair.callers[0].user_id
    alone, shared = add_dependent(pair, member.user_id), add_dependent(pair, other, member.user_id)
    slot_id = add_slot(pair, capacity=2)
    book_for(pair, alone, slot_id)
    pair.runner.run(finish_erasure(pair.services[0], erase_account(pair, member)))
    assert bookers(pair, slot_id) == [alone.user_id]
    assert "guardians" not in document_of(pair, alone)
    assert document_of(pair, shared)["guardians"] == [ObjectId(other)]
    assert pair.runner.run(pair.services[0].users.find_dependents([member.user_id])) == []


@pytest.mark.parametrize("step", STEPS)
def test_an_erasure_that_was_killed_after_a_step_is_finished_by_another_process(
    pair: ServicePair, member: Caller, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    services, run, user_id = pair.services[0], pair.runner.run, member.user_id
    checker = ModelChecker(pair)
    free, full = (SlotId(checker.add_slot(SlotShape())) for _ in range(2))
    book_for(pair, member, free)
    book_for(pair, pair.callers[0], full)
    run(waitlist.join(services, full, user_id, 0.0))
    run(teams.create(services, "Own", user_id))
    run(services.resources.insert(Resource(f"Berg {user_id}", ResourceKind.STAFF, user_id)))
    pair.database["draw_wishes"].insert_one({"draw": ObjectId(), "users": [ObjectId(user_id)]})
    add_dependent(pair, user_id)
    add_mail(pair, user_id)
    add_mail(pair, pair.callers[0].user_id, user_id)
    erased = erase_account(pair, member)
    assert named(pair, member) == NAMED.keys()
    path, _, name = step.rpartition(".")
    owner = attrgetter(path.removeprefix("services."))(services) if "s." in path else erasure
    owner = teams if path == "teams" else owner
    finish: Callable[..., Awaitable[object]] = getattr(owner, name)

    async def die(*arguments: object) -> None:
        await finish(*arguments)
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, die)
        with pytest.raises(KilledError):
            run(finish_erasure(services, erased))
    done = list(STEPS)[: list(STEPS).index(step) + 1]
    assert named(pair, member) == NAMED.keys() - set[str]().union(*(STEPS[each] for each in done))
    sweep(pair)
    assert named(pair, member) == set()
