"""Permissions to ban users and to invite them to set a password."""

from datetime import UTC, datetime

import pytest

from slotlock.domain.users.administration import AdminRequired, manageable_roles
from slotlock.domain.users.bans import CannotBanSelf, ban_refusal
from slotlock.domain.users.user import Caller, Role, User, UserId

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SELF, OTHER = UserId("a" * 24), UserId("b" * 24)


def user(role: Role, user_id: UserId = OTHER) -> User:
    return User(user_id, "Ada", "ada@x.org", role, NOW)


def caller(role: Role) -> Caller:
    return Caller(SELF, role, "session", NOW)


def test_an_organizer_can_ban_members() -> None:
    assert ban_refusal(caller(Role.ORGANIZER), user(Role.MEMBER)) is None


@pytest.mark.parametrize("role", [Role.ORGANIZER, Role.ADMIN])
def test_only_admins_can_ban_organizers_and_admins(role: Role) -> None:
    assert ban_refusal(caller(Role.ORGANIZER), user(role)) == AdminRequired()
    assert ban_refusal(caller(Role.ADMIN), user(role)) is None


@pytest.mark.parametrize("role", [Role.ORGANIZER, Role.ADMIN])
def test_users_cannot_ban_themselves(role: Role) -> None:
    assert ban_refusal(caller(role), user(role, SELF)) == CannotBanSelf()


def test_organizers_can_invite_members_only() -> None:
    assert manageable_roles(caller(Role.ORGANIZER)) == (Role.MEMBER,)
    assert set(manageable_roles(caller(Role.ADMIN))) == set(Role)


def test_a_user_with_a_ban_date_is_banned() -> None:
    assert not user(Role.MEMBER).banned
    assert User(SELF, "Ada", "ada@x.org", Role.MEMBER, NOW, banned_at=NOW).banned
