"""Who may ban whom, and whose first password one may hand out."""

from datetime import UTC, datetime

import pytest

from slotlock.domain.users.bans import AdminRequired, CannotBanSelf, ban_refusal, invitable_roles
from slotlock.domain.users.user import Caller, Role, User, UserId

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ME, OTHER = UserId("a" * 24), UserId("b" * 24)


def person(role: Role, user_id: UserId = OTHER) -> User:
    return User(user_id, "Ada", "ada@x.org", role, NOW)


def caller(role: Role) -> Caller:
    return Caller(ME, role, "session", NOW)


def test_an_organiser_bans_members() -> None:
    assert ban_refusal(caller(Role.ORGANIZER), person(Role.MEMBER)) is None


@pytest.mark.parametrize("role", [Role.ORGANIZER, Role.ADMIN])
def test_organisers_and_admins_are_banned_by_admins_only(role: Role) -> None:
    assert ban_refusal(caller(Role.ORGANIZER), person(role)) == AdminRequired()
    assert ban_refusal(caller(Role.ADMIN), person(role)) is None


@pytest.mark.parametrize("role", [Role.ORGANIZER, Role.ADMIN])
def test_nobody_bans_themselves(role: Role) -> None:
    assert ban_refusal(caller(role), person(role, ME)) == CannotBanSelf()


def test_an_invitation_gives_no_more_than_its_maker_has() -> None:
    assert invitable_roles(caller(Role.ORGANIZER)) == (Role.MEMBER,)
    assert set(invitable_roles(caller(Role.ADMIN))) == set(Role)


def test_a_person_is_banned_from_the_time_on_that_it_says() -> None:
    assert not person(Role.MEMBER).banned
    assert User(ME, "Ada", "ada@x.org", Role.MEMBER, NOW, banned_at=NOW).banned
