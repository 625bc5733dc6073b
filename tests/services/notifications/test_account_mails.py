"""Forgotten passwords, verified addresses and invitations: links that were mailed, used once."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from bson import ObjectId

from slotlock.auth import accounts, email_verification, invitations
from slotlock.auth.accounts import EmailTaken, InvalidCredentials
from slotlock.auth.admin import account_admin, account_claims, groups_and_bans
from slotlock.auth.admin.account_claims import UserClaimed
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.email_verification import CODE_TTL, EmailVerificationSent, EmailVerified
from slotlock.auth.invitations import (
    MAIL_INTERVAL,
    MAILED_RESET_TTL,
    InvalidInvitation,
    PasswordReset,
    PasswordResetRequested,
    request_password_reset,
    reset_password,
    set_password,
)
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.tokens import BadTokenError, TokenSigner
from slotlock.domain.notifications.outbox import OutboxState
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.account_admin_rules import AdminRequired, HeldPlaces
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxRepository
from slotlock.infrastructure.mongo.users import account_admin_writer, credentials
from slotlock.infrastructure.mongo.users.account_admin_writer import AccountAdminWriter
from tests.support.apps.processes import SECRET
from tests.support.clients.user_files import user_csv
from tests.support.notifications.mail_scene import SCHOOL, MailScene

OLD, NEW = "correct horse battery", "another long sentence"
ADA = "ada@school.test"
REQUESTED = PasswordResetRequested(30)


@dataclass(frozen=True)
class Accounts:
    """The accounts of a site, and the mails that their users get."""

    auth: Auth
    scene: MailScene

    async def register(self, name: str = "Ada", email: str = ADA) -> SignedInSession:
        """Register a user."""
        session = await accounts.register(self.auth, name, email, OLD)
        assert isinstance(session, SignedInSession)
        return session

    async def caller(self, session: SignedInSession) -> Caller:
        """Return the caller of a session. Raises: BadTokenError."""
        caller = await authenticate(self.auth, f"Bearer {session.access_token}")
        assert caller is not None
        return caller

    async def find(self, user: User) -> User:
        """Return a user as stored."""
        return (await self.auth.repositories.users.find_many([user.id]))[user.id]

    async def sign_in(self, email: str, password: str) -> bool:
        """Return whether somebody signs in."""
        return isinstance(await accounts.login(self.auth, email, password), SignedInSession)

    async def sent(self) -> list[str]:
        """Send what the outbox has, and return the new mails: the recipient and the subject."""
        await self.auth.finish_background()
        count = len(self.scene.trap.messages)
        await self.scene.send(timedelta())
        return [f"{m['To']}: {m['Subject']}" for m in self.scene.trap.messages[count:]]

    def secret(self) -> str:
        """Return the token or code of the last mail, which stands in the fragment of its link."""
        body = self.scene.trap.messages[-1].get_body(("plain",))
        assert body is not None
        link = r"^https://school\.test/board#/\w+/([0-9A-Za-z-]+)$"
        lines = body.get_content().splitlines()
        [secret] = [found[1] for line in lines if (found := re.match(link, line))]
        return str(secret)

    async def mail_reset(self, email: str = ADA) -> str:
        """Request a new password and return the token of the mail."""
        assert await request_password_reset(self.auth, email) == REQUESTED
        assert await self.sent()
        return self.secret()


@pytest.fixture
def site(scene: MailScene) -> Iterator[Accounts]:
    hasher = PasswordHasher()
    auth = Auth(
        scene.services,
        hasher,
        TokenSigner([SECRET]),
        scene.clock,
        login_throttle=None,
        sends_mail=True,
    )
    yield Accounts(auth, scene)
    hasher.close()


async def test_a_mailed_link_replaces_the_password_once_and_ends_all_sessions(
    site: Accounts,
) -> None:
    session = await site.register()
    token = await site.mail_reset()
    assert isinstance(await reset_password(site.auth, token, "short"), InvalidInput)
    assert await site.sign_in(ADA, OLD)  # until then, the old one works
    assert await reset_password(site.auth, f" {token} ", NEW) == PasswordReset(2)
    assert await reset_password(site.auth, token, NEW) == InvalidInvitation()
    with pytest.raises(BadTokenError):
        await site.caller(session)
    assert [await site.sign_in(ADA, password) for password in (OLD, NEW)] == [False, True]
    assert await site.sent() == ["Ada <ada@school.test>: Your password was changed"]
    assert (await site.find(session.user)).email_verified


async def test_the_outbox_and_the_account_have_no_token_once_the_mail_is_sent(
    site: Accounts,
) -> None:
    await site.register()
    token = await site.mail_reset()
    for collection in ("users", "outbox", "audit_notes"):
        documents = await site.scene.database[collection].find().to_list()
        assert documents or collection == "audit_notes"
        assert token not in str(documents)


async def test_nobody_sees_whether_an_address_has_an_account(site: Accounts) -> None:
    await site.register()
    # No response waits for what only the request for an account does.
    for address in (ADA, "nobody@school.test", "a-user-name", "ADA@school.test "):
        assert await request_password_reset(site.auth, address) == REQUESTED
    assert await site.scene.entries() == []
    # Requests that wait together are one mail.
    assert await site.sent() == ["ada@school.test: Choose a new password"]
    assert isinstance(await request_password_reset(site.auth, "ada @school.test"), InvalidInput)


async def test_who_is_banned_or_has_another_address_gets_no_account_by_an_old_link(
    site: Accounts,
) -> None:
    user = (await site.register()).user
    token = await site.mail_reset()
    organizer = replace(site.scene.organizer, role=Role.ADMIN)
    await groups_and_bans.vouch(site.auth, organizer, user.id)
    await account_admin.update_user(site.auth, organizer, user.id, None, "lovelace@school.test")
    assert await site.sent() == ["ada@school.test: Your account has another email address"]
    assert await reset_password(site.auth, token, NEW) == InvalidInvitation()
    # Also if a process of an older version changed the address.
    token = await site.mail_reset("lovelace@school.test")
    users = site.scene.database["users"]
    await users.update_one({"_id": ObjectId(user.id)}, {"$set": {"email": "new@school.test"}})
    assert await reset_password(site.auth, token, NEW) == InvalidInvitation()
    await groups_and_bans.ban(site.auth, organizer, user.id, None)
    assert await request_password_reset(site.auth, "new@school.test") == REQUESTED
    assert await site.sent() == []


async def test_a_mailed_link_expires_and_only_the_last_one_is_valid(site: Accounts) -> None:
    await site.register()
    first, second = await site.mail_reset(), await site.mail_reset()
    assert await reset_password(site.auth, first, NEW) == InvalidInvitation()
    site.scene.clock.advance(MAILED_RESET_TTL)
    assert await reset_password(site.auth, second, NEW) == InvalidInvitation()
    assert await request_password_reset(site.auth, ADA) == REQUESTED
    await site.auth.finish_background()
    site.scene.clock.advance(MAILED_RESET_TTL)  # while the mail server is down
    assert await site.sent() == []
    assert (await site.scene.entries())[0].state is OutboxState.SUPPRESSED


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_of_concurrent_requests_with_one_link_one_sets_the_password(
    site: Accounts, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    user = (await site.register()).user
    token = await site.mail_reset()
    if not is_guarded:
        monkeypatch.setattr(credentials, "valid_filter", lambda *_: {"_id": ObjectId(user.id)})
    outcomes = await asyncio.gather(
        *(reset_password(site.auth, token, f"password number {n}") for n in range(4))
    )
    winners = [outcome for outcome in outcomes if isinstance(outcome, PasswordReset)]
    assert len(winners) == (1 if is_guarded else 4)


async def test_a_reset_by_mail_leaves_an_invitation_and_a_new_password_ends_both(
    site: Accounts,
) -> None:
    body = user_csv("school.test", {"ben": "Ben"}, "5a")
    await import_users(site.auth, body, dry_run=False)
    [paper] = [each async for each in invitations.invite(site.auth, "5a", tuple(Role))]
    token = await site.mail_reset("ben@school.test")
    assert await invitations.request_password_reset(site.auth, "ben@school.test") == REQUESTED
    assert isinstance(await set_password(site.auth, paper.token, OLD), SignedInSession)
    assert not (await site.find(paper.user)).email_verified  # the paper was nobody's mail
    assert await reset_password(site.auth, token, NEW) == InvalidInvitation()
    token = await site.mail_reset("ben@school.test")
    session = await accounts.login(site.auth, "ben@school.test", OLD)
    assert isinstance(session, SignedInSession)
    caller = await site.caller(session)
    await accounts.change_password(site.auth, caller, OLD, NEW)
    assert await reset_password(site.auth, token, OLD) == InvalidInvitation()
    assert await site.sent() == ["Ben <ben@school.test>: Your password was changed"]


async def test_an_organizer_gets_no_mail_with_the_password_link_of_a_member(
    site: Accounts,
) -> None:
    organizer = site.scene.organizer
    created = await account_admin.create_invited_user(
        site.auth, organizer, "Ben", "bne@school.test", [], Role.MEMBER
    )
    assert isinstance(created, account_admin.UserCreated)
    user, typo = created.user, "bne@school.test"

    async def redirect(caller: Caller, email: str) -> object:
        return await account_admin.update_user(site.auth, caller, user.id, None, email)

    # Nobody has signed in yet: organizers correct what they imported.
    assert isinstance(await redirect(organizer, "ben@school.test"), account_admin.UserUpdated)
    invited = await account_admin.invite(site.auth, organizer, user.id)
    assert isinstance(invited, account_admin.UserInvited)
    assert isinstance(await set_password(site.auth, invited.invitation_token, OLD), SignedInSession)
    await site.sent()

    assert await redirect(organizer, "organizer@school.test") == AdminRequired()
    for address in ("organizer@school.test", typo):
        assert await request_password_reset(site.auth, address) == REQUESTED
    assert await site.sent() == []
    renamed = await account_admin.update_user(
        site.auth, organizer, user.id, "Benjamin", "BEN@school.test"
    )
    assert isinstance(renamed, account_admin.UserUpdated)
    assert await request_password_reset(site.auth, "ben@school.test") == REQUESTED
    assert await site.sent() == ["Benjamin <ben@school.test>: Choose a new password"]
    admin = replace(organizer, role=Role.ADMIN)
    assert isinstance(await redirect(admin, "benjamin@school.test"), account_admin.UserUpdated)


@pytest.mark.parametrize("sends_mail", [True, False])
async def test_a_stolen_session_of_an_admin_gets_no_mail_with_the_password_link_of_the_admin(
    site: Accounts, sends_mail: bool
) -> None:
    session = await site.register()
    caller = replace(await site.caller(session), role=Role.ADMIN)
    auth = replace(site.auth, sends_mail=sends_mail)
    users = auth.repositories.users
    await account_admin.set_role(auth, None, caller.user_id, Role.ADMIN, vouches=True)
    for email, username in (("thief@school.test", None), (None, "thief")):
        before = (await users.find_many([caller.user_id]))[caller.user_id].login_name
        outcome = await account_admin.update_user(
            auth, caller, caller.user_id, "Eve", email, username
        )
        assert isinstance(outcome, InvalidInput if sends_mail else account_admin.UserUpdated)
        after = (await users.find_many([caller.user_id]))[caller.user_id].login_name
        assert after == (before if sends_mail else email or username)
    renamed = await account_admin.update_user(auth, caller, caller.user_id, "Eva", None)
    assert isinstance(renamed, account_admin.UserUpdated)


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_an_address_stays_if_its_user_sets_a_password_before_it_is_written(
    site: Accounts, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    organizer = site.scene.organizer
    created = await account_admin.create_invited_user(
        site.auth, organizer, "Ben", "ben@school.test", [], Role.MEMBER
    )
    assert isinstance(created, account_admin.UserCreated)
    token, write = created.invitation_token or "", AccountAdminWriter.update

    async def set_password_and_write(*arguments: object) -> object:
        await set_password(site.auth, token, OLD)
        return await write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(AccountAdminWriter, "update", set_password_and_write)
    if not is_guarded:
        monkeypatch.setattr(account_admin_writer, "NOT_SIGNED_IN", {})
    await account_admin.update_user(
        site.auth, organizer, created.user.id, None, "organizer@school.test"
    )
    found = await site.find(created.user)
    assert found.has_password
    assert found.login_name == ("ben@school.test" if is_guarded else "organizer@school.test")


async def test_the_owner_of_an_address_locks_out_who_registered_it(site: Accounts) -> None:
    stranger = await site.register("A stranger")
    caller = await site.caller(stranger)
    await site.auth.repositories.calendar_tokens.save(
        caller.user_id, "calendar", site.scene.clock.now
    )
    changed = await email_verification.change_email(site.auth, caller, "stranger@evil.test", OLD)
    assert isinstance(changed, EmailVerificationSent)
    await site.sent()
    code = site.secret()
    assert await reset_password(site.auth, await site.mail_reset(), NEW) == PasswordReset(1)
    assert await site.auth.repositories.calendar_tokens.find_user("calendar") is None
    owner = await accounts.login(site.auth, ADA, NEW)
    assert isinstance(owner, SignedInSession)
    outcome = await email_verification.verify_email(site.auth, await site.caller(owner), code)
    assert isinstance(outcome, InvalidInput)


async def test_only_the_user_who_is_signed_in_verifies_the_address(site: Accounts) -> None:
    auth, ada = site.auth, await site.register()
    stranger = await site.caller(await site.register("Eve", "eve@school.test"))
    caller = await site.caller(ada)
    sent = await email_verification.request_email_verification(auth, caller)
    now = site.scene.clock.now
    assert sent == EmailVerificationSent(ADA, now + CODE_TTL, now)
    # The name is what the registrant wants to say to the owner of the address.
    assert await site.sent() == ["ada@school.test: Confirm your email address"]
    code = site.secret()
    assert isinstance(await email_verification.verify_email(auth, stranger, code), InvalidInput)
    assert not (await site.find(ada.user)).email_verified
    verified = await email_verification.verify_email(auth, caller, f" {code} ")
    assert isinstance(verified, EmailVerified)
    assert (verified.user.email_verified, verified.user.self_registered) == (True, False)
    assert isinstance(await email_verification.verify_email(auth, caller, code), InvalidInput)
    again = await email_verification.request_email_verification(auth, caller)
    assert isinstance(again, InvalidInput)


async def test_a_new_address_is_verified_first_and_a_mail_to_the_old_one_says_so(
    site: Accounts,
) -> None:
    auth, session = site.auth, await site.register()
    caller, new = await site.caller(session), "lovelace@school.test"
    wrong = await email_verification.change_email(auth, caller, new, NEW)
    assert wrong == InvalidCredentials(of_caller=True)
    sent, now = await email_verification.change_email(auth, caller, new, OLD), site.scene.clock.now
    assert sent == EmailVerificationSent(new, now + CODE_TTL, now)
    assert await site.sent() == [f"{new}: Confirm your email address"]
    assert await site.sign_in(ADA, OLD)
    assert isinstance(
        await email_verification.verify_email(auth, caller, site.secret()), EmailVerified
    )
    assert await site.sent() == ["ada@school.test: Your account has another email address"]
    assert [await site.sign_in(each, OLD) for each in (ADA, new)] == [False, True]
    found = await site.find(session.user)
    assert (found.login_name, found.email_verified) == (new, True)


async def test_an_address_that_another_user_got_meanwhile_stays_theirs(site: Accounts) -> None:
    caller, new = await site.caller(await site.register()), "taken@school.test"
    await email_verification.change_email(site.auth, caller, new, OLD)
    await site.sent()
    code = site.secret()
    await site.register("Ben", new)
    assert await email_verification.verify_email(site.auth, caller, code) == EmailTaken(new)
    assert await site.sent() == []
    site.scene.clock.advance(CODE_TTL)
    outcome = await email_verification.verify_email(site.auth, caller, code)
    assert isinstance(outcome, InvalidInput)


async def test_invitations_go_out_by_mail_and_the_file_has_those_without_an_address(
    site: Accounts,
) -> None:
    body = user_csv("school.test", {"ben": "Ben", "cleo": "Cleo"}, "5a")
    await import_users(site.auth, body, dry_run=False)
    admin = replace(site.scene.organizer, role=Role.ADMIN)
    await account_admin.create_invited_user(
        site.auth, admin, "Dora", None, ["5a"], Role.MEMBER, "dora"
    )
    site.scene.clock.advance(invitations.INVITATION_TTL)  # that of Dora, which she was shown, ends
    invited = [
        each async for each in invitations.invite(site.auth, "5a", tuple(Role), by_mail=True)
    ]
    assert [each.user.name for each in invited if each.token] == ["Dora"]
    assert sorted(await site.sent()) == [
        f"{name} <{name.lower()}@school.test>: Your account at School" for name in ("Ben", "Cleo")
    ]
    session = await set_password(site.auth, site.secret(), OLD)
    assert isinstance(session, SignedInSession)
    assert (await site.find(session.user)).email_verified


async def test_an_invitation_by_mail_leaves_the_code_of_a_letter_and_replaces_an_earlier_mail(
    site: Accounts,
) -> None:
    async def invite_all(*, by_mail: bool = True) -> dict[str, str]:
        found = invitations.invite(site.auth, "5a", tuple(Role), by_mail=by_mail)
        return {each.user.name: each.token async for each in found}

    async def is_valid(token: str) -> bool:
        return await invitations.find_owner(site.auth, token) is not None

    body = user_csv("school.test", {"ben": "Ben", "cleo": "Cleo"}, "5a")
    await import_users(site.auth, body, dry_run=False)
    admin = replace(site.scene.organizer, role=Role.ADMIN)
    await account_admin.create_invited_user(
        site.auth, admin, "Dora", None, ["5a"], Role.MEMBER, "dora"
    )
    letters = await invite_all(by_mail=False)
    assert set(await invite_all()) == {"Ben", "Cleo"}  # a letter of Dora is all that she can have
    assert len(await site.sent()) == 2
    mailed = site.secret()
    assert [await is_valid(each) for each in (*letters.values(), mailed)] == [True] * 4
    site.scene.clock.advance(MAIL_INTERVAL + timedelta(seconds=1))
    assert set(await invite_all()) == {"Ben", "Cleo"}
    assert len(await site.sent()) == 2
    assert not await is_valid(mailed)
    session = await set_password(site.auth, site.secret(), OLD)
    assert isinstance(session, SignedInSession)
    assert (await site.find(session.user)).email_verified
    assert not await is_valid(letters[session.user.name])
    assert await is_valid(letters["Dora"])
    site.scene.clock.advance(invitations.INVITATION_TTL)
    again = await invite_all()
    assert again.pop("Dora")  # her letter is no longer valid
    assert len(again) == 1
    assert await site.sent()
    assert await is_valid(site.secret())


async def test_nobody_gets_two_invitations_by_mail_within_a_day(site: Accounts) -> None:
    async def invite_all() -> list[str]:
        roles = tuple(Role)
        found = invitations.invite(site.auth, "5a", roles, by_mail=True)
        return [each.user.name async for each in found]

    async def invite_one(name: str) -> object:
        user = await site.auth.repositories.users.find_with_password_hash(f"{name}@school.test")
        assert user is not None
        return await account_admin.invite(site.auth, admin, user[0].id, by_mail=True)

    admin = replace(site.scene.organizer, role=Role.ADMIN)
    body = user_csv("school.test", {"ben": "Ben", "cleo": "Cleo"}, "5a")
    await import_users(site.auth, body, dry_run=False)
    assert isinstance(await invite_one("ben"), account_admin.UserInvited)
    pressed = await asyncio.gather(invite_all(), invite_all())
    assert sorted([*pressed[0], *pressed[1]]) == ["Cleo"]
    outcome = await invite_one("cleo")
    assert isinstance(outcome, InvalidInput)
    assert outcome.problems[0].field == "sendMail"
    await account_admin.create_invited_user(
        site.auth, admin, "Dora", "dora@school.test", ["5a"], Role.MEMBER, by_mail=True
    )
    assert await invite_all() == []
    assert len(await site.sent()) == 3
    site.scene.clock.advance(MAIL_INTERVAL + timedelta(seconds=1))
    assert sorted(await invite_all()) == ["Ben", "Cleo", "Dora"]


async def test_an_invitation_that_could_not_be_sent_is_mailed_again_at_once(
    site: Accounts,
) -> None:
    async def invite() -> object:
        return await account_admin.invite(site.auth, admin, user.id, by_mail=True)

    admin = replace(site.scene.organizer, role=Role.ADMIN)
    created = await account_admin.create_invited_user(
        site.auth, admin, "Finn", "finn@school.test", [], Role.MEMBER, by_mail=True
    )
    assert isinstance(created, account_admin.UserCreated)
    user = created.user
    site.scene.trap.respond_to_recipient = lambda _: "550 unknown"
    for _ in range(2):
        assert await site.sent() == []
        assert (await site.find(user)).undeliverable_since is not None
        site.scene.clock.advance(timedelta(seconds=1))
        both = await asyncio.gather(invite(), invite())
        assert sum(isinstance(each, account_admin.UserInvited) for each in both) == 1
    site.scene.trap.respond_to_recipient = lambda _: None
    assert await site.sent() == ["Finn <finn@school.test>: Your account at School"]
    assert (await site.find(user)).undeliverable_since is None
    assert isinstance(await invite(), InvalidInput)


@pytest.mark.parametrize(
    ("own", "locale", "of_sender", "subject"),
    [
        (None, None, None, "Your account at School"),
        (None, None, "de", "Dein Konto bei School"),
        (None, "de", "zh", "Dein Konto bei School"),
        ("zh", "de", "en", "你在 School 的账号"),
    ],
)
async def test_an_invitation_is_in_the_language_of_its_user_of_the_site_or_of_its_sender(
    site: Accounts, own: str | None, locale: str | None, of_sender: str | None, subject: str
) -> None:
    users, admin = site.auth.repositories.users, replace(site.scene.organizer, role=Role.ADMIN)
    site.scene.services.site.defaults = replace(SCHOOL, locale=locale or "")
    await users.set_preferences(admin.user_id, of_sender, {})
    created = await account_admin.create_invited_user(
        site.auth, admin, "Finn", "finn@school.test", [], Role.MEMBER, by_mail=True
    )
    assert isinstance(created, account_admin.UserCreated)
    await users.set_preferences(created.user.id, own, {})
    first = await site.sent()
    site.scene.clock.advance(2 * MAIL_INTERVAL)
    assert await invitations.invite_user(site.auth, created.user, admin, by_mail=True)
    assert [*first, *await site.sent()] == [f"Finn <finn@school.test>: {subject}"] * 2


async def test_an_account_and_the_mail_that_invites_its_user_are_created_together(
    site: Accounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def create() -> object:
        return await account_admin.create_invited_user(
            site.auth, admin, "Eva", "eva@school.test", [], Role.MEMBER, by_mail=True
        )

    async def die(*_: object) -> int:
        raise MemoryError

    admin = replace(site.scene.organizer, role=Role.ADMIN)
    with monkeypatch.context() as patch:
        patch.setattr(OutboxRepository, "insert", die)
        with pytest.raises(MemoryError):
            await create()
    assert isinstance(await create(), account_admin.UserCreated)
    assert len(await site.sent()) == 1


async def test_headers_hold_no_more_than_a_name_and_an_address(site: Accounts) -> None:
    names = ("Ada\r\nBcc: eve@evil.test", "Ada <eve@evil.test>, Eve", "\u202eAda; =?utf-8?q?x?=")
    addresses = ('"a b"@school.test', "ada@school.test\r\nBcc: eve@evil.test", "ünï@school.test")
    users = site.auth.repositories.users
    for number, name in enumerate(names):
        # As an older version or an operator may have stored it.
        email = f"{number}.ada@school.test"
        assert await users.insert(name, email, Role.MEMBER, "hash", site.scene.clock.now)
        await request_password_reset(site.auth, email)
    for address in addresses:
        assert await users.insert("Ada", address, Role.MEMBER, "hash", site.scene.clock.now)
        await request_password_reset(site.auth, address)
    await site.sent()
    for message in site.scene.trap.messages:
        assert message["Bcc"] is None
        [recipient] = message["To"].addresses
        assert recipient.addr_spec.endswith("@school.test")
    recipients = {each for mail in site.scene.trap.mails for each in mail.recipients}
    assert not any("evil" in each for each in recipients)


async def test_a_mail_goes_to_the_domain_of_its_own_account(site: Accounts) -> None:
    """IDNA 2003 made one domain of both, that of another account."""
    for form in ("s@straße.test", "s@strasse.test"):
        await site.register("Ada", form)
        assert await request_password_reset(site.auth, form) == REQUESTED
        assert len(await site.sent()) == 1
    recipients = [mail.recipients for mail in site.scene.trap.mails]
    assert recipients == [("s@xn--strae-oqa.test",), ("s@strasse.test",)]
    assert await site.sign_in("s@xn--strae-oqa.test", OLD)


async def test_only_the_mail_of_a_claim_has_its_token_which_verifies_the_address(
    site: Accounts,
) -> None:
    eve = (await site.register("Eve")).user
    admin = replace(site.scene.organizer, role=Role.ADMIN)
    assert isinstance(await account_claims.lock(site.auth, eve.id), User)
    claimed = await account_claims.invite(site.auth, admin, eve.id, HeldPlaces())
    assert isinstance(claimed, UserClaimed)
    assert claimed.invitation_token is None
    (mail,) = await site.sent()
    invitation = site.secret()
    # A stranger chose the name, and can request further mails.
    assert await request_password_reset(site.auth, ADA) == REQUESTED
    assert [each.partition(":")[0] for each in (mail, *await site.sent())] == [ADA] * 2
    accepted = await set_password(site.auth, invitation, NEW)
    assert isinstance(accepted, SignedInSession)
    assert accepted.user.email_verified
