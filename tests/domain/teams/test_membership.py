"""The rules of team membership, one by one and in random order."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.teams.membership import (
    TeamDecision,
    accept,
    create,
    decline,
    invite,
    leave,
    withdraw,
)
from slotlock.domain.teams.team import MAX_TEAM_SIZE, Member, Team, TeamId, TeamVersion, shared_with
from slotlock.domain.teams.team_outcomes import (
    AlreadyMember,
    InvitationDeclined,
    NotInvited,
    TeamFull,
    TeamLeft,
    TeamNotFound,
    TeamSaved,
    TooManyInvitations,
    TooManyTeams,
)
from slotlock.domain.users.user import UserId

NOW = datetime(2030, 5, 17, 14, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ADA, BEN, CLEO = UserId("ada"), UserId("ben"), UserId("cleo")


def email_of(user_id: UserId) -> str:
    """Return the user's e-mail address."""
    return f"{user_id}@slotlock.test"


def team(*members: UserId, team_id: str = "t") -> Team:
    """Return a team with these members."""
    return Team(
        TeamId(team_id), "Relay", tuple(Member(user_id, NOW, 0) for user_id in members), (), 1, NOW
    )


def invited(before: Team, *emails: str) -> Team:
    """Return the team after its first member invited these addresses."""
    for email in emails:
        before = saved_team(invite(before, before.members[0].user_id, email, {}, 0, NOW))
    return before


def saved_team(decision: TeamDecision[Any]) -> Team:
    """Return the team of an accepted decision, which must be the team of the outcome."""
    assert decision.team is not None
    assert decision.outcome == TeamSaved(decision.team)
    return decision.team


def test_the_creator_is_the_first_member() -> None:
    outcome = create(TeamId("t"), "  Läufer 🏃‍♀️ ", ADA, 7, NOW)
    assert isinstance(outcome, TeamSaved)
    assert outcome.team.name == "Läufer 🏃‍♀️"
    assert outcome.team.members == (Member(ADA, NOW, 7),)
    assert (outcome.team.invitations, outcome.team.version) == ((), 1)


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "two\nlines", "a\u2028b", "\ud800"])
def test_an_invalid_name_names_the_field(name: str) -> None:
    outcome = create(TeamId("t"), name, ADA, 0, NOW)
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == ["name"]


def test_a_name_can_have_100_characters_of_any_script() -> None:
    assert isinstance(create(TeamId("t"), "瑜" * 100, ADA, 0, NOW), TeamSaved)


def test_a_user_with_the_maximum_of_teams_can_neither_create_nor_join_one() -> None:
    before = invited(team(ADA), email_of(BEN))
    assert create(TeamId("t"), "Relay", BEN, None, NOW) == TooManyTeams()
    decision = accept(before, BEN, email_of(BEN), None, NOW)
    assert decision == TeamDecision(before, TooManyTeams())


def test_any_member_can_invite_and_others_do_not_see_the_team() -> None:
    before = team(ADA, BEN)
    after = saved_team(invite(before, BEN, "new@slotlock.test", {}, 3, LATER))
    (invitation,) = after.invitations
    assert (invitation.email, invitation.at, invitation.by) == ("new@slotlock.test", LATER, BEN)
    assert after.version == 2
    decision = invite(before, CLEO, "new@slotlock.test", {}, 3, NOW)
    assert decision == TeamDecision(before, TeamNotFound(before.id))


def test_inviting_twice_changes_nothing() -> None:
    before = invited(team(ADA, BEN), "new@slotlock.test")
    again = invite(before, BEN, "new@slotlock.test", {}, 9, LATER)
    assert saved_team(again) == before


def test_inviting_a_member_returns_already_member() -> None:
    before = team(ADA, BEN)
    decision = invite(before, ADA, email_of(BEN), {email_of(ADA): ADA, email_of(BEN): BEN}, 0, NOW)
    assert decision == TeamDecision(before, AlreadyMember(BEN))


def test_an_invalid_address_names_the_field() -> None:
    outcome = invite(team(ADA), ADA, None, {}, 0, NOW).outcome
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == ["email"]


def test_an_address_with_the_maximum_of_invitations_gets_no_more() -> None:
    before = team(ADA)
    decision = invite(before, ADA, "popular@slotlock.test", {}, None, NOW)
    assert decision == TeamDecision(before, TooManyInvitations())


def test_an_open_invitation_reserves_a_seat() -> None:
    others = [UserId(f"p{n}") for n in range(MAX_TEAM_SIZE - 1)]
    full = invited(team(ADA), *map(email_of, others))
    one_more = invite(full, ADA, "late@slotlock.test", {}, 0, NOW)
    assert one_more == TeamDecision(full, TeamFull())
    assert saved_team(invite(full, ADA, email_of(others[0]), {}, 0, NOW)) == full
    for user_id in others:
        full = saved_team(accept(full, user_id, email_of(user_id), 0, NOW))
    assert len(full.members) == MAX_TEAM_SIZE
    assert isinstance(invite(full, ADA, "late@slotlock.test", {}, 0, NOW).outcome, TeamFull)


def test_only_the_user_with_the_invited_address_can_accept() -> None:
    before = invited(team(ADA), email_of(BEN))
    assert accept(before, CLEO, email_of(CLEO), 0, NOW) == TeamDecision(before, NotInvited())
    after = saved_team(accept(before, BEN, email_of(BEN), 4, LATER))
    assert after.members[-1] == Member(BEN, LATER, 4)
    assert after.invitations == ()
    assert after.version == before.version + 1


def test_accepting_twice_changes_nothing() -> None:
    after = saved_team(accept(invited(team(ADA), email_of(BEN)), BEN, email_of(BEN), 0, NOW))
    assert saved_team(accept(after, BEN, email_of(BEN), 1, LATER)) == after


def test_an_invitation_follows_its_user_and_not_the_next_owner_of_the_address() -> None:
    before = invited(team(ADA), email_of(BEN))
    (invitation,) = before.invitations
    moved = replace(before, invitations=(replace(invitation, user_id=BEN),))
    after = saved_team(accept(moved, BEN, "new@slotlock.test", 0, NOW))
    assert (after.has_member(BEN), after.invitations) == (True, ())
    assert decline(moved, CLEO, email_of(BEN)) == TeamDecision(moved, NotInvited())
    assert saved_team(withdraw(moved, ADA, email_of(BEN))).invitations == ()


def test_one_answer_ends_all_invitations_of_a_user() -> None:
    before = invited(team(ADA), email_of(BEN), "new@slotlock.test")
    old, new = before.invitations
    moved = replace(before, invitations=(replace(old, user_id=BEN), new))
    for decision in (
        accept(moved, BEN, "new@slotlock.test", 0, NOW),
        decline(moved, BEN, "new@slotlock.test"),
    ):
        assert decision.team is not None
        assert decision.team.invitations == ()


def test_a_member_whose_new_address_was_invited_frees_the_seat_by_accepting() -> None:
    before = invited(team(ADA, BEN), "new@slotlock.test")
    after = saved_team(accept(before, BEN, "new@slotlock.test", 0, NOW))
    assert (len(after.members), after.invitations) == (2, ())


def test_a_declined_invitation_is_gone_until_the_next_one() -> None:
    before = invited(team(ADA), email_of(BEN), email_of(CLEO))
    decision = decline(before, BEN, email_of(BEN))
    assert decision.outcome == InvitationDeclined(before.id)
    assert decision.team is not None
    assert [invitation.email for invitation in decision.team.invitations] == [email_of(CLEO)]
    assert isinstance(decline(decision.team, BEN, email_of(BEN)).outcome, NotInvited)
    assert isinstance(accept(decision.team, BEN, email_of(BEN), 0, NOW).outcome, NotInvited)
    again = invited(decision.team, email_of(BEN))
    assert saved_team(accept(again, BEN, email_of(BEN), 0, NOW)).has_member(BEN)


def test_any_member_can_withdraw_an_invitation() -> None:
    before = invited(team(ADA, BEN), email_of(CLEO))
    after = saved_team(withdraw(before, BEN, email_of(CLEO)))
    assert after.invitations == ()
    assert isinstance(withdraw(after, BEN, email_of(CLEO)).outcome, NotInvited)
    assert isinstance(withdraw(before, BEN, None).outcome, NotInvited)
    assert isinstance(withdraw(before, CLEO, email_of(CLEO)).outcome, TeamNotFound)


def test_the_team_ends_with_its_last_member() -> None:
    decision = leave(team(ADA, BEN), ADA)
    assert decision.outcome == TeamLeft(TeamId("t"))
    assert decision.team == replace(team(BEN), version=2)
    assert leave(decision.team, BEN) == TeamDecision(None, TeamLeft(TeamId("t")))
    assert isinstance(leave(decision.team, ADA).outcome, TeamNotFound)


def test_teammates_are_found_with_as_few_teams_as_possible() -> None:
    pair = team(ADA, BEN, team_id="pair")
    trio = replace(team(ADA, BEN, CLEO, team_id="trio"), version=5)
    foreign = team(BEN, CLEO, UserId("dan"), team_id="foreign")
    found = shared_with([pair, trio, foreign], ADA, [BEN, CLEO, UserId("dan")])
    assert found == (frozenset({BEN, CLEO}), (TeamVersion(TeamId("trio"), 5),))
    assert shared_with([pair, trio], ADA, [ADA]) == (frozenset(), ())
    assert shared_with([foreign], ADA, [BEN]) == (frozenset(), ())


USERS = [UserId(f"p{n}") for n in range(4)]
ACTIONS = st.tuples(
    st.sampled_from(["invite", "accept", "decline", "withdraw", "leave"]),
    st.sampled_from(USERS),
    st.sampled_from(USERS),
)


def apply_action(before: Team, action: str, actor: UserId, other: UserId) -> TeamDecision[Any]:
    """Return the decision of one action of one user."""
    by_email = {email_of(member.user_id): member.user_id for member in before.members}
    decisions: dict[str, TeamDecision[Any]] = {
        "invite": invite(before, actor, email_of(other), by_email, 0, NOW),
        "accept": accept(before, actor, email_of(actor), 0, NOW),
        "decline": decline(before, actor, email_of(actor)),
        "withdraw": withdraw(before, actor, email_of(other)),
        "leave": leave(before, actor),
    }
    return decisions[action]


@given(actions=st.lists(ACTIONS, max_size=40))
def test_after_any_actions_members_are_unique_and_each_change_is_one_version(
    actions: list[tuple[str, UserId, UserId]],
) -> None:
    before = team(USERS[0])
    for action in actions:
        after = apply_action(before, *action).team
        if after is None:
            assert [member.user_id for member in before.members] == [action[1]]
            return
        assert after.version == before.version + (after != before)
        members = [email_of(member.user_id) for member in after.members]
        invited_emails = [invitation.email for invitation in after.invitations]
        assert members
        assert len({*members, *invited_emails}) == len(members) + len(invited_emails)
        before = after
