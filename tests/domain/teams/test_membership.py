"""The rules of teams, read aloud and then tried in every order."""

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
from slotlock.domain.teams.outcomes import (
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
from slotlock.domain.teams.team import MAX_TEAM_SIZE, Member, Team, TeamId, TeamVersion, shared_with
from slotlock.domain.users.user import UserId

NOW = datetime(2030, 5, 17, 14, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
ADA, BEN, CLEO = UserId("ada"), UserId("ben"), UserId("cleo")


def address(user_id: UserId) -> str:
    """A person's address."""
    return f"{user_id}@slotlock.test"


def team(*members: UserId, team_id: str = "t") -> Team:
    """A team of these people."""
    in_it = tuple(Member(user_id, NOW, 0) for user_id in members)
    return Team(TeamId(team_id), "Relay", in_it, (), 1, NOW)


def invited(before: Team, *emails: str) -> Team:
    """The team after its first member invited these addresses."""
    for email in emails:
        before = kept(invite(before, before.members[0].user_id, email, (), 0, NOW))
    return before


def kept(decision: TeamDecision[Any]) -> Team:
    """The team that a decision leaves, which is also the one it answers."""
    assert decision.team is not None
    assert decision.outcome == TeamSaved(decision.team)
    return decision.team


def test_who_creates_a_team_is_its_first_member() -> None:
    outcome = create(TeamId("t"), "  Läufer 🏃‍♀️ ", ADA, 7, NOW)
    assert isinstance(outcome, TeamSaved)
    assert outcome.team.name == "Läufer 🏃‍♀️"
    assert outcome.team.members == (Member(ADA, NOW, 7),)
    assert (outcome.team.invitations, outcome.team.version) == ((), 1)


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "two\nlines", "a\u2028b", "\ud800"])
def test_a_name_that_cannot_be_is_named(name: str) -> None:
    outcome = create(TeamId("t"), name, ADA, 0, NOW)
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == ["name"]


def test_a_name_of_100_characters_of_any_script_is_one() -> None:
    assert isinstance(create(TeamId("t"), "瑜" * 100, ADA, 0, NOW), TeamSaved)


def test_who_is_in_as_many_teams_as_may_be_neither_creates_nor_accepts_one() -> None:
    before = invited(team(ADA), address(BEN))
    assert create(TeamId("t"), "Relay", BEN, None, NOW) == TooManyTeams()
    decision = accept(before, BEN, address(BEN), None, NOW)
    assert decision == TeamDecision(before, TooManyTeams())


def test_any_member_invites_and_whoever_is_none_is_told_there_is_no_team() -> None:
    before = team(ADA, BEN)
    after = kept(invite(before, BEN, "new@slotlock.test", (), 3, LATER))
    (invitation,) = after.invitations
    assert (invitation.email, invitation.at, invitation.by) == ("new@slotlock.test", LATER, BEN)
    assert after.version == 2
    decision = invite(before, CLEO, "new@slotlock.test", (), 3, NOW)
    assert decision == TeamDecision(before, TeamNotFound(before.id))


def test_inviting_twice_changes_nothing() -> None:
    before = invited(team(ADA, BEN), "new@slotlock.test")
    again = invite(before, BEN, "new@slotlock.test", (), 9, LATER)
    assert kept(again) == before


def test_inviting_a_member_says_so() -> None:
    before = team(ADA, BEN)
    decision = invite(before, ADA, address(BEN), {address(ADA), address(BEN)}, 0, NOW)
    assert decision == TeamDecision(before, AlreadyMember())


def test_what_is_no_address_is_named() -> None:
    outcome = invite(team(ADA), ADA, None, (), 0, NOW).outcome
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == ["email"]


def test_an_address_with_as_many_invitations_as_may_be_gets_no_more() -> None:
    before = team(ADA)
    decision = invite(before, ADA, "popular@slotlock.test", (), None, NOW)
    assert decision == TeamDecision(before, TooManyInvitations())


def test_an_open_invitation_keeps_a_seat_so_that_accepting_never_finds_the_team_full() -> None:
    others = [UserId(f"p{n}") for n in range(MAX_TEAM_SIZE - 1)]
    full = invited(team(ADA), *map(address, others))
    one_more = invite(full, ADA, "late@slotlock.test", (), 0, NOW)
    assert one_more == TeamDecision(full, TeamFull())
    assert kept(invite(full, ADA, address(others[0]), (), 0, NOW)) == full
    for person in others:
        full = kept(accept(full, person, address(person), 0, NOW))
    assert len(full.members) == MAX_TEAM_SIZE
    assert isinstance(invite(full, ADA, "late@slotlock.test", (), 0, NOW).outcome, TeamFull)


def test_only_the_person_with_the_address_comes_in() -> None:
    before = invited(team(ADA), address(BEN))
    assert accept(before, CLEO, address(CLEO), 0, NOW) == TeamDecision(before, NotInvited())
    after = kept(accept(before, BEN, address(BEN), 4, LATER))
    assert after.members[-1] == Member(BEN, LATER, 4)
    assert after.invitations == ()
    assert after.version == before.version + 1


def test_accepting_twice_changes_nothing() -> None:
    after = kept(accept(invited(team(ADA), address(BEN)), BEN, address(BEN), 0, NOW))
    assert kept(accept(after, BEN, address(BEN), 1, LATER)) == after


def test_who_declined_was_not_invited_until_they_are_again() -> None:
    before = invited(team(ADA), address(BEN), address(CLEO))
    decision = decline(before, address(BEN))
    assert decision.outcome == InvitationDeclined(before.id)
    assert decision.team is not None
    assert [i.email for i in decision.team.invitations] == [address(CLEO)]
    assert isinstance(decline(decision.team, address(BEN)).outcome, NotInvited)
    assert isinstance(accept(decision.team, BEN, address(BEN), 0, NOW).outcome, NotInvited)
    again = invited(decision.team, address(BEN))
    assert kept(accept(again, BEN, address(BEN), 0, NOW)).has_member(BEN)


def test_any_member_takes_an_invitation_back() -> None:
    before = invited(team(ADA, BEN), address(CLEO))
    after = kept(withdraw(before, BEN, address(CLEO)))
    assert after.invitations == ()
    assert isinstance(withdraw(after, BEN, address(CLEO)).outcome, NotInvited)
    assert isinstance(withdraw(before, BEN, None).outcome, NotInvited)
    assert isinstance(withdraw(before, CLEO, address(CLEO)).outcome, TeamNotFound)


def test_the_last_one_out_ends_the_team() -> None:
    one_left = leave(team(ADA, BEN), ADA)
    assert one_left.outcome == TeamLeft(TeamId("t"))
    assert one_left.team == replace(team(BEN), version=2)
    assert leave(one_left.team, BEN) == TeamDecision(None, TeamLeft(TeamId("t")))
    assert isinstance(leave(one_left.team, ADA).outcome, TeamNotFound)


def test_those_in_a_team_with_somebody_are_found_with_the_fewest_teams_that_say_so() -> None:
    pair = team(ADA, BEN, team_id="pair")
    trio = replace(team(ADA, BEN, CLEO, team_id="trio"), version=5)
    foreign = team(BEN, CLEO, UserId("dan"), team_id="foreign")
    found = shared_with([pair, trio, foreign], ADA, [BEN, CLEO, UserId("dan")])
    assert found == (frozenset({BEN, CLEO}), (TeamVersion(TeamId("trio"), 5),))
    assert shared_with([pair, trio], ADA, [ADA]) == (frozenset(), ())
    assert shared_with([foreign], ADA, [BEN]) == (frozenset(), ())


PEOPLE = [UserId(f"p{n}") for n in range(4)]
ACTS = st.tuples(
    st.sampled_from(["invite", "accept", "decline", "withdraw", "leave"]),
    st.sampled_from(PEOPLE),
    st.sampled_from(PEOPLE),
)


def acted(before: Team, act: str, actor: UserId, other: UserId) -> TeamDecision[Any]:
    """What comes of one act of one person."""
    emails = {address(member.user_id) for member in before.members}
    decisions: dict[str, TeamDecision[Any]] = {
        "invite": invite(before, actor, address(other), emails, 0, NOW),
        "accept": accept(before, actor, address(actor), 0, NOW),
        "decline": decline(before, address(actor)),
        "withdraw": withdraw(before, actor, address(other)),
        "leave": leave(before, actor),
    }
    return decisions[act]


@given(acts=st.lists(ACTS, max_size=40))
def test_whatever_people_do_each_is_in_once_and_every_change_is_one_version(
    acts: list[tuple[str, UserId, UserId]],
) -> None:
    now = team(PEOPLE[0])
    for act in acts:
        after = acted(now, *act).team
        if after is None:
            assert [m.user_id for m in now.members] == [act[1]]
            return
        assert after.version == now.version + (after != now)
        members = [address(m.user_id) for m in after.members]
        emails = [i.email for i in after.invitations]
        assert members
        assert len({*members, *emails}) == len(members) + len(emails)
        now = after
