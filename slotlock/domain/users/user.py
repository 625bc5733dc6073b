"""Users, their roles, and the caller of a request."""

import re
from datetime import datetime
from enum import StrEnum
from operator import attrgetter
from typing import NewType
from unicodedata import normalize

from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.shared.text import is_blank, normalize_line, strip_blanks, validate_line
from slotlock.domain.shared.value_object import value_object

UserId = NewType("UserId", str)

MAX_USER_NAME_LENGTH = 100
# Some characters fold to many; with a login name, it still is a position in a list.
MAX_SORTED_LENGTH = 300
# No registered combination of language, script, region and variants is longer (RFC 5646, 4.4.1).
MAX_LOCALE_LENGTH = 35
MAX_PHONE_LENGTH = 40
_PHONE = re.compile(r"(?:[ +()/.-]*[0-9]){3,}[ +()/.-]*")
_HYPHENS = re.compile("[\u2010-\u2015\u2212]")
_LANGUAGE_TAG = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", re.ASCII)


class Role(DescribedEnum):
    """The rights of a user."""

    MEMBER = "member", "The user may book places."
    ORGANIZER = (
        "organizer",
        "The user may also book for others, and manage slots, campaigns, resources and the "
        "accounts of members.",
    )
    ADMIN = (
        "admin",
        "The user may also manage the accounts of organizers and admins, set roles, erase users "
        "and read their personal data.",
    )

    def __init__(self, value: str, _description: str = "") -> None:
        # Whether the role may create and change slots and see all their bookings.
        self.is_organizer = value != "member"


class Registration(DescribedEnum):
    """Who gets an account."""

    OPEN = "open", "Everybody may register."
    INVITED = "invited", "Users set a first password with an invitation from an organizer."
    CLOSED = "closed", "The operators give accounts their passwords."


class MailTopic(StrEnum):
    """What users may refuse to get mails about."""

    REMINDERS = "reminders"
    ANNOUNCEMENTS = "announcements"


@value_object
class UndeliverableCount:
    """How many addresses of users are undeliverable; the first and the last since then."""

    count: int
    first_at: datetime | None = None
    last_at: datetime | None = None


@value_object
class User:
    """A user account. Imported users have no password until they set one.

    `login_name` is an email address, or a user name, which has no @. `self_registered` is true
    until somebody vouches for the user or claims the account, or until the address is verified: a
    link that was mailed to it came back. `undeliverable_since` is when the mail server of the
    address rejected it; a new address, or a mail that arrives, ends that. The user wants no mails
    about `refused_topics`. `signs_in_at_provider` is true from the first sign-in there, even if an
    import named the identity before. `is_claimed` is true once an admin has claimed the account: a
    stranger may have chosen its name. `family_name` is that of the file that named the user; it
    counts only while it is a part of `name` (`split_name`). `phone` is a telephone number.
    `guardians` are the users who act for this one (`dependents.py`).
    """

    id: UserId
    name: str
    login_name: str
    role: Role
    created_at: datetime
    groups: tuple[str, ...] = ()
    banned_at: datetime | None = None
    ban_reason: str | None = None
    has_password: bool = True
    erased_at: datetime | None = None
    self_registered: bool = False
    locale: str | None = None
    undeliverable_since: datetime | None = None
    email_verified: bool = False
    refused_topics: frozenset[MailTopic] = frozenset()
    signs_in_at_provider: bool = False
    is_claimed: bool = False
    family_name: str | None = None
    phone: str | None = None
    guardians: tuple[UserId, ...] = ()

    @property
    def email(self) -> str | None:
        """Return the email address; None for an account with a user name."""
        return self.login_name if "@" in self.login_name else None

    @property
    def username(self) -> str | None:
        """Return the user name; None for an account with an email address or a made name."""
        return None if "@" in self.login_name or self.has_made_login_name else self.login_name

    @property
    def has_made_login_name(self) -> bool:
        """Return whether nobody gave the account a login name, so that nobody signs in with it."""
        return " " in self.login_name

    @property
    def guardian_refs(self) -> tuple[str, ...]:
        """Return the guardians as the audit log shows them: the ids that clients know."""
        return tuple(f"user_{each}" for each in self.guardians)

    @property
    def has_signed_in(self) -> bool:
        """Return whether the user has set a password or signed in at a provider."""
        return self.has_password or self.signs_in_at_provider

    @property
    def has_known_name(self) -> bool:
        """Return whether mails to the address of the account may hold its name.

        Otherwise it may be what somebody wants to say to a stranger (docs/decisions/0071).
        """
        return self.email_verified or not (self.self_registered or self.is_claimed)

    def wants(self, topic: MailTopic) -> bool:
        """Return whether the user wants mails about a topic."""
        return topic not in self.refused_topics

    @property
    def banned(self) -> bool:
        """Return whether the user can neither log in nor get bookings."""
        return self.banned_at is not None

    @property
    def known_family_name(self) -> str | None:
        """Return the family name if it still is a part of the name."""
        family_name, given_name = split_name(self.name, self.family_name)
        return family_name if given_name else None

    @property
    def given_name(self) -> str:
        """Return the given name if a file has split the name; otherwise all of it."""
        return split_name(self.name, self.family_name)[1] or self.name

    @property
    def sort_name(self) -> str:
        """Return the place of the user in lists."""
        return to_sort_name(self.name, self.family_name, self.login_name)

    @property
    def erased(self) -> bool:
        """Return whether the account was erased: only its id and past bookings are left."""
        return self.erased_at is not None


@value_object
class Caller:
    """The user behind a request, authenticated by a token that is valid until `expires_at`.

    `acts_for` are users whose bookings are the caller's own affair, and `leads` the ids of slots,
    as far as `booking/permissions.py` loaded them for this request. The rules ask nothing else.
    In a read for a dependent, it is the dependent, and `actor_id` the guardian who reads.
    """

    user_id: UserId
    role: Role
    session_id: str
    expires_at: datetime
    acts_for: frozenset[UserId] = frozenset()
    leads: frozenset[str] = frozenset()
    actor_id: UserId | None = None

    # Whether the caller may create and change slots and see all their bookings.
    is_organizer = property(attrgetter("role.is_organizer"))

    def as_dependent(self, user_id: UserId) -> "Caller":
        """Return a dependent of the caller as one who reads. It is never a session."""
        return Caller(user_id, Role.MEMBER, self.session_id, self.expires_at, actor_id=self.user_id)


@value_object
class UserFilter:
    """The users to list; a field that is None does not restrict the list.

    `group` is one group or several, as `5a, 5b`. With `group_patterns`, they have a group with one
    of these names, or beginnings such as `5*`, and the words of the text occur in the name: leaders
    book such users, and see no addresses. With `eligible_groups`, they may book in a campaign that
    has these sets.
    """

    text: str | None = None
    group: str | None = None
    banned: bool | None = None
    without_password: bool | None = None
    self_registered: bool | None = None
    group_patterns: tuple[str, ...] = ()
    eligible_groups: tuple[tuple[str, ...], ...] | None = None


@value_object
class UserGroup:
    """A group, and how many users have it."""

    name: str
    user_count: int


def split_name(name: str, family_name: str | None) -> tuple[str, str]:
    """Return the family name and the given name; of a name that no file has split, it and nothing.

    An organizer may have changed the name since.
    """
    if family_name and name.endswith(f" {family_name}"):
        return family_name, name.removesuffix(f" {family_name}")
    if family_name and name.startswith(family_name) and " " not in name:  # in East Asia
        return family_name, name.removeprefix(family_name)
    return name, ""


def list_name(name: str, family_name: str | None) -> str:
    """Return a name as lists show it: `Becker, Björn`."""
    family, given = split_name(name, family_name)
    return f"{family}, {given}" if given and " " in name else name


def to_sort_name(name: str, family_name: str | None, login_name: str) -> str:
    """Return a text, unique as the login name, that orders lists as rosters are ordered."""
    return f"{sort_key(list_name(name, family_name))[:MAX_SORTED_LENGTH]}\t{login_name}"


def normalize_locale(tag: str) -> str:
    """Return a language tag in the usual capitals, such as `zh-Hant-TW` (RFC 5646, 2.1.1)."""
    language, *subtags = strip_blanks(tag).lower().split("-")
    cased = [
        each.upper() if len(each) == 2 else each.title() if len(each) == 4 else each
        for each in subtags
    ]
    return "-".join((language, *cased))


def validate_locale(tag: str) -> Problem | None:
    """Return the problem with a language tag, or None."""
    is_tag = len(tag) <= MAX_LOCALE_LENGTH and _LANGUAGE_TAG.fullmatch(tag)
    return None if is_tag else ProblemCode.INVALID_LANGUAGE.problem()


def normalize_phone(text: str) -> str | None:
    """Return a telephone number with the usual digits and hyphens; None if there is none."""
    return normalize_line(_HYPHENS.sub("-", normalize("NFKC", text))) or None


def validate_phone(phone: str) -> Problem | None:
    """Return the problem with a telephone number, or None."""
    is_number = len(phone) <= MAX_PHONE_LENGTH and _PHONE.fullmatch(phone)
    return None if is_number else ProblemCode.INVALID_PHONE.problem(maximum=MAX_PHONE_LENGTH)


def validate_user_name(name: str) -> Problem | None:
    """Return the problem with a user's name, or None."""
    return validate_line(name, MAX_USER_NAME_LENGTH) or (
        ProblemCode.NAME_MISSING.problem() if is_blank(name) else None
    )
