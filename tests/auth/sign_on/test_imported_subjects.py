"""Files of users that name the subject of a user at a provider."""

import secrets
from dataclasses import replace

import pytest
from bson import ObjectId

from slotlock.auth import accounts
from slotlock.auth.admin import account_admin
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.invitations import invite, set_password
from slotlock.auth.providers.connections import open_sign_on
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.sign_on.sign_in_outcomes import LinkRequired, SignInTaken
from slotlock.auth.tokens import hash_token
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.user_files.choices import Choice, Choices
from slotlock.domain.user_files.plan import NO_CHOICES, ImportPlan, ImportResult, plan_import
from slotlock.domain.user_files.user_file import UserRow
from slotlock.domain.users.identity import Identity
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.mongo.users import imports
from slotlock.infrastructure.mongo.users.identities import NewIdentity
from slotlock.infrastructure.mongo.users.imports import ImportAttempt
from tests.support.clients.user_files import CLAIM_ALL
from tests.support.sign_on.scene import BOARD, SignOnScene
from tests.support.stores.empty_database import stored_database
from tests.support.stores.users import insert_user, new_email

PASSWORD = "correct horse battery"


async def import_lines(
    scene: SignOnScene,
    *lines: str,
    choices: Choices = NO_CHOICES,
    caller: Caller | None = None,
) -> ImportResult | list[tuple[int, str]]:
    """Import users. Return the result, or the line and the code of each problem."""
    body = "\n".join(("email,name,groups,subject", *lines)).encode()
    outcome = await import_users(scene.auth, body, dry_run=False, choices=choices, caller=caller)
    if isinstance(outcome, InvalidFile):
        return [(line, each.code) for each in outcome.problems for line in each.lines]
    assert isinstance(outcome, ImportResult)
    return outcome


def subject_of(scene: SignOnScene) -> str:
    """Return the subject of the user of the provider."""
    return str(scene.provider.claims["sub"])


def caller_of(user: User) -> Caller:
    """Return the user as a caller."""
    return Caller(user.id, user.role, "session", user.created_at)


def is_result(created: int, updated: int, unchanged: int, claimed: int = 0) -> ImportResult:
    """Return the result of an import with these counts."""
    return ImportResult(created, updated, unchanged, dry_run=False, claimed=claimed)


@pytest.mark.parametrize("address", [None, "other", "same"])
@pytest.mark.parametrize("prefix", ["", "school:"])
async def test_the_first_sign_in_with_an_imported_subject_opens_the_account_with_its_groups(
    scene: SignOnScene, address: str | None, prefix: str
) -> None:
    email = new_email()
    line = f"{email},Ada,choir,{prefix}{subject_of(scene)}"
    assert await import_lines(scene, line) == is_result(1, 0, 0)
    given = {None: None, "other": new_email(), "same": email}[address]
    scene.provider.claims |= {"email": given, "email_verified": True}
    user = await scene.user()
    assert (user.login_name, user.name, user.groups) == (email, "Ada", ("choir",))
    assert user.email_verified is (address == "same")
    assert (await scene.user()).email_verified is (address == "same")
    (identity,) = await scene.identities(user.id)
    assert (identity.email, identity.linked_at is not None) == (given, True)
    assert await import_lines(scene, line) == is_result(0, 0, 1)


async def test_nobody_with_another_subject_gets_the_account_of_an_imported_subject(
    scene: SignOnScene,
) -> None:
    email, subject = new_email(), subject_of(scene)
    await import_lines(scene, f"{email},Ada,choir,{subject}")
    other = secrets.token_hex(8)
    scene.provider.claims |= {"sub": other, "email": email, "email_verified": True}
    assert await scene.sign_in() == LinkRequired(email)
    registered = await accounts.register(scene.auth, "Eve", new_email(), PASSWORD)
    assert isinstance(registered, SignedInSession)
    scene.provider.claims["sub"] = subject
    assert await scene.link(caller_of(registered.user), PASSWORD) == SignInTaken()
    assert (await scene.user()).groups == ("choir",)


async def test_no_address_links_an_account_that_an_import_names_a_subject_for_meanwhile(
    scene: SignOnScene,
) -> None:
    user = await insert_user(scene.auth)
    other = Identity(scene.provider.issuer, secrets.token_hex(8))
    new = NewIdentity(other, user.login_name, email_verified=True, at=scene.auth.now())
    await import_lines(scene, f"{user.login_name},Ada,,{subject_of(scene)}")
    assert await scene.auth.repositories.identities.link(user, new, by_address=True) is None
    assert await scene.auth.repositories.identities.link(user, new, by_address=False) is not None


async def test_an_import_plans_again_if_the_user_signs_in_with_another_subject_meanwhile(
    scene: SignOnScene,
) -> None:
    user, imports = await insert_user(scene.auth), scene.auth.repositories.user_imports
    named = Identity(scene.provider.issuer, secrets.token_hex(8))
    rows = [UserRow(2, user.login_name, "Ada", None, None, named)]
    seen = await imports.load_snapshot([user.login_name], [named])
    plan = plan_import(rows, seen.users_by_login_name, linked=seen.linked)
    assert isinstance(plan, ImportPlan)
    scene.provider.claims |= {"email": user.login_name, "email_verified": True}
    assert (await scene.user()).id == user.id
    assert await imports.commit(plan, seen, scene.auth.now()) is ImportAttempt.CONFLICT
    line = f"{user.login_name},Ada,,{named.subject}"
    assert await import_lines(scene, line) == [(2, "OTHER_SUBJECT")]
    elsewhere = replace(named, issuer="https://elsewhere.example")
    rows = [replace(rows[0], identity=elsewhere)]
    seen = await imports.load_snapshot([user.login_name], [elsewhere])
    plan = plan_import(rows, seen.users_by_login_name, linked=seen.linked)
    assert isinstance(plan, ImportPlan)
    assert await imports.commit(plan, seen, scene.auth.now()) is ImportAttempt.WRITTEN
    assert len(await scene.identities(user.id)) == 2


async def test_no_file_of_an_organizer_leads_a_subject_into_an_account_that_is_used(
    scene: SignOnScene,
) -> None:
    organizer = caller_of(await insert_user(scene.auth, Role.ORGANIZER))
    pupil, email = await insert_user(scene.auth), new_email()
    registered = await insert_user(scene.auth, self_registered=True)
    subject, vouch_all = subject_of(scene), Choices(others=Choice.VOUCH)
    for user in (pupil, registered):
        line = f"{user.login_name},Ada,,{subject}"
        refused = await import_lines(scene, line, caller=organizer, choices=vouch_all)
        assert refused == [(2, "SUBJECT_BY_ADMIN")]
    # A file may correct its subjects until somebody has signed in.
    for of_email in (secrets.token_hex(8), subject):
        assert isinstance(
            await import_lines(scene, f"{email},Ada,,{of_email}", caller=organizer), ImportResult
        )
    user = await scene.user()
    assert (user.login_name, user.signs_in_at_provider) == (email, True)
    elsewhere = replace(scene.provider.settings(), id="other", issuer="https://other.example")
    async with open_sign_on([elsewhere], BOARD) as sign_on:
        moved = replace(scene, auth=replace(scene.auth, sign_on=sign_on))
        line = f"{email},Ada,,{secrets.token_hex(8)}"
        assert await import_lines(moved, line, caller=organizer) == [(2, "SUBJECT_BY_ADMIN")]
        admin = caller_of(await insert_user(scene.auth, Role.ADMIN))
        assert await import_lines(moved, line, caller=admin) == is_result(0, 1, 0)


async def test_a_stolen_session_of_an_admin_imports_no_subject_into_their_own_account(
    scene: SignOnScene,
) -> None:
    password_hash = await scene.auth.password_hasher.hash("correct horse battery")
    admin = await insert_user(scene.auth, Role.ADMIN, password_hash)
    line = f"{admin.login_name},Ada,,{subject_of(scene)}"
    refused = await import_lines(scene, line, caller=caller_of(admin))
    assert refused == [(2, "SUBJECT_BY_ADMIN")]
    other = caller_of(await insert_user(scene.auth, Role.ADMIN))
    assert await import_lines(scene, line, caller=other) == is_result(0, 1, 0)


async def test_nobody_is_invited_who_signs_in_at_the_provider(scene: SignOnScene) -> None:
    admin = caller_of(await insert_user(scene.auth, Role.ADMIN))
    email = new_email()
    await import_lines(scene, f"{email},Ada,,{subject_of(scene)}")
    found = await scene.auth.repositories.users.find_with_password_hash(email)
    assert found is not None
    for _ in ("before the first sign-in", "after it"):
        outcome = await account_admin.invite(scene.auth, admin, found[0].id)
        assert isinstance(outcome, InvalidInput)
        assert outcome.problems[0].message == ProblemCode.SIGNS_IN_AT_PROVIDER.problem()
        assert (await scene.user()).id == found[0].id


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_an_import_adds_no_subject_after_its_user_has_set_a_password(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    writer, email, group = scene.auth.repositories.user_imports, new_email(), secrets.token_hex(8)
    await import_lines(scene, f"{email},Ada,{group},")
    named = Identity(scene.provider.issuer, subject_of(scene))
    seen = await writer.load_snapshot([email], [named])
    rows = [UserRow(2, email, "Ada", None, None, named)]
    plan = plan_import(rows, seen.users_by_login_name, linked=seen.linked)
    assert isinstance(plan, ImportPlan)
    [invited] = [each async for each in invite(scene.auth, group, tuple(Role))]
    assert isinstance(await set_password(scene.auth, invited.token, PASSWORD), SignedInSession)
    if not is_guarded:
        monkeypatch.setattr(imports, "NOT_SIGNED_IN", {})
    attempt = await writer.commit(plan, seen, scene.auth.now())
    assert attempt is (ImportAttempt.CONFLICT if is_guarded else ImportAttempt.WRITTEN)


async def test_an_import_of_a_subject_that_signs_in_meanwhile_names_its_line(
    scene: SignOnScene,
) -> None:
    imports, email = scene.auth.repositories.user_imports, new_email()
    named = Identity(scene.provider.issuer, subject_of(scene))
    seen = await imports.load_snapshot([email], [named])
    plan = plan_import([UserRow(2, email, "Ada", None, None, named)], {})
    assert isinstance(plan, ImportPlan)
    await scene.user()
    assert await imports.commit(plan, seen, scene.auth.now()) is ImportAttempt.CONFLICT
    lines = (f"{new_email()},Ben,,", f"{email},Ada,,{named.subject}")
    assert await import_lines(scene, *lines) == [(3, "SUBJECT_TAKEN")]


async def test_a_file_corrects_the_subjects_of_an_earlier_one(
    scene: SignOnScene, mongo_url: str
) -> None:
    ada, ben = new_email(), new_email()
    subject, other = subject_of(scene), secrets.token_hex(8)
    await import_lines(scene, f"{ada},Ada,choir,{other}", f"{ben},Ben,,{subject}")
    assert await import_lines(scene, f"{ada},Ada,choir,{subject}") == [(2, "SUBJECT_TAKEN")]
    swapped = (f"{ada},Ada,choir,{subject}", f"{ben},Ben,,{other}")
    assert await import_lines(scene, *swapped) == is_result(0, 2, 0)
    user = await scene.user()
    assert user.login_name == ada
    assert await import_lines(scene, f"{ada},Ada,choir,", f"{ben},Ben,,") == is_result(0, 0, 2)
    assert (await scene.user()).id == user.id
    notes = stored_database(mongo_url)["audit_notes"].find({"users": ObjectId(user.id)})
    edits = [edit for note in notes for edit in note["edits"] if edit["field"] == "subject"]
    old, new = (f"{scene.provider.issuer} {each}" for each in (other, subject))
    named = {(edit["before"], edit["after"]) for edit in edits if edit["user"] == ObjectId(user.id)}
    assert named == {(old, new), (None, old)}


async def test_a_claimed_account_has_only_the_subject_of_its_row(scene: SignOnScene) -> None:
    email, subject = new_email(), subject_of(scene)
    scene.provider.claims |= {"sub": secrets.token_hex(8), "email": email}
    squatting = dict(scene.provider.claims)
    squatter = await scene.user()
    line = f"{email},Ada,choir,{subject}"
    registered = await import_lines(scene, line)
    assert isinstance(registered, ImportResult)
    assert len(registered.self_registered) == 1
    ben = f"{new_email()},Ben,,{squatting['sub']}"
    assert await import_lines(scene, line, ben, choices=CLAIM_ALL) == is_result(1, 0, 0, claimed=1)
    scene.provider.claims = {"sub": subject}
    user = await scene.user()
    assert (user.id, user.groups) == (squatter.id, ("choir",))
    scene.provider.claims = squatting
    assert (await scene.user()).name == "Ben"
    assert len(await scene.identities(user.id)) == 1


async def test_the_first_sign_in_ends_an_invitation_that_an_earlier_import_led_to(
    scene: SignOnScene,
) -> None:
    email, group = new_email(), secrets.token_hex(4)
    await import_lines(scene, f"{email},Ada,{group},")
    (invitation,) = [each async for each in invite(scene.auth, group, tuple(Role))]
    await import_lines(scene, f"{email},Ada,{group},{subject_of(scene)}")
    assert [each async for each in invite(scene.auth, group, tuple(Role))] == []
    auth, token = scene.auth, hash_token(invitation.token)
    assert await auth.repositories.invitations.find(token, auth.now()) is not None
    await scene.user()
    assert await auth.repositories.invitations.find(token, auth.now()) is None


async def test_a_wrong_subject_is_a_problem_with_its_line(scene: SignOnScene) -> None:
    wrong = ["other:1", "f:1", "school:", "school:two words", "x" * 256, "1,04769E+20"]
    lines = [f'{new_email()},Ada,,"{subject}"' for subject in wrong]
    expected = [(line, "INVALID_SUBJECT") for line in range(2, 2 + len(wrong))]
    assert await import_lines(scene, *lines) == expected
    twice = [f"{new_email()},Ada,,{subject}" for subject in ("school:1", "school:2", "1")]
    assert await import_lines(scene, *twice) == [(4, "SAME_USER")]
    without = replace(scene, auth=replace(scene.auth, sign_on=None))
    assert await import_lines(without, f"{new_email()},Ada,,1") == [(2, "INVALID_SUBJECT")]
