"""Who is invited to a team gets a mail, which neither strangers nor their words can use."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.notifications.mail_kinds import TEAM_INVITATION
from slotlock.domain.notifications.outbox import OutboxState
from slotlock.domain.teams.team import Team, TeamId
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.domain.users.user import MailTopic, Role, User
from slotlock.services import teams
from tests.support.notifications.mail_scene import MailScene, open_mail_scene

BEN = "1@school.test"


@pytest.fixture
async def scene(servers: EmbeddedServers) -> AsyncIterator[MailScene]:
    async with open_mail_scene(servers) as opened:
        opened.services.sends_mail = True
        yield opened


async def create_team(scene: MailScene, number: int = 0, name: str = "Relay") -> TeamId:
    """Let a member create a team."""
    created = await teams.create(scene.services, name, scene.members[number].user_id)
    assert isinstance(created, TeamSaved)
    return created.team.id


async def invite(scene: MailScene, team_id: TeamId, address: str, number: int = 0) -> Team:
    """Let a member invite somebody."""
    by = scene.members[number].user_id
    invited = await teams.invite(scene.services, team_id, address, by)
    assert isinstance(invited, TeamSaved)
    return invited.team


async def sent_to(scene: MailScene) -> list[str]:
    """Send what waits, and return to whom mails went until now."""
    await scene.send(timedelta())
    return [str(message["To"]) for message in scene.trap.messages]


async def test_an_invited_user_gets_a_mail_without_words_of_the_one_who_invites(
    scene: MailScene,
) -> None:
    team_id = await create_team(scene, name="Win 1000 EUR")
    await invite(scene, team_id, BEN)
    assert await sent_to(scene) == ["Member 1 <1@school.test>"]
    [message] = scene.trap.messages
    assert message["Subject"] == "You are invited to a team"
    assert "https://school.test/board#/\n" in str(message)
    assert "Win 1000" not in str(message)
    assert "Member 0" not in str(message)
    [entry] = await scene.entries()
    assert entry.state is OutboxState.SENT
    stored = str(await scene.database["outbox"].find_one({}))
    assert BEN not in stored  # nor that of somebody without an account, below


async def test_no_outcome_says_whether_an_address_has_an_account(scene: MailScene) -> None:
    team_id = await create_team(scene)
    for address in (BEN, "nobody@school.test"):
        await invite(scene, team_id, address)
    waiting = await scene.database["outbox"].find({}, {"_id": 0, "data.to": 0}).to_list()
    assert [each["kind"] for each in waiting] == [TEAM_INVITATION.name] * 2
    assert waiting[0] == waiting[1]
    assert await sent_to(scene) == ["Member 1 <1@school.test>"]
    assert "nobody" not in str(await scene.database["outbox"].find().to_list())


async def test_a_user_name_gets_no_mail(scene: MailScene) -> None:
    await invite(scene, await create_team(scene), "5a.12")
    assert await scene.entries() == []


async def test_nobody_gets_two_mails_of_one_member_within_a_day(scene: MailScene) -> None:
    by = scene.members[0].user_id
    for name in ("Relay", "Chess"):
        team_id = await create_team(scene, name=name)
        await invite(scene, team_id, BEN)
        await teams.withdraw(scene.services, team_id, BEN, by)
        await invite(scene, team_id, BEN)
    assert len(await sent_to(scene)) == 1
    scene.clock.advance(timedelta(days=1))
    await invite(scene, team_id, BEN)
    assert len(await sent_to(scene)) == 2


async def test_an_invitation_that_is_no_longer_open_is_no_mail(scene: MailScene) -> None:
    team_id = await create_team(scene)
    await invite(scene, team_id, BEN)
    await teams.accept(scene.services, team_id, scene.members[1].user_id)
    assert await sent_to(scene) == []


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_an_address_that_nobody_verified_gets_no_invitation(
    scene: MailScene, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    if not is_guarded:
        monkeypatch.setattr(User, "has_known_name", True)
    now = scene.clock.now
    await scene.services.users.insert(
        "Eve", "victim@else.test", Role.MEMBER, "hash", now, self_registered=True
    )
    await invite(scene, await create_team(scene), "victim@else.test")
    assert len(await sent_to(scene)) == (not is_guarded)


async def test_users_refuse_invitations_as_announcements(scene: MailScene) -> None:
    user_id = scene.members[1].user_id
    await scene.services.users.set_preferences(user_id, None, {MailTopic.ANNOUNCEMENTS: False})
    await invite(scene, await create_team(scene), BEN)
    assert await sent_to(scene) == []
    [entry] = await scene.entries()
    assert entry.note == "the user refuses announcements"
