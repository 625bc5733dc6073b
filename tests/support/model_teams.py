"""Teams as the model knows them: who is in and who is invited, in order."""

from dataclasses import dataclass, field

from tests.support.acts import Act, Answer


@dataclass
class TeamFacts:
    """A team's people and those who are invited."""

    members: list[str]
    invited: list[str] = field(default_factory=list)


def team_answer(teams: dict[str, TeamFacts], act: Act) -> Answer:
    """Do an act on teams and tell its answer."""
    if act.verb == "team_create":
        teams[act.token] = TeamFacts([act.by])
        return _kept(act.token, teams[act.token])
    team = teams.get(act.booking, TeamFacts([]))
    if act.verb == "team_accept":
        return _accept(team, act)
    if act.by not in team.members:
        return ("TeamNotFound",)
    if act.verb == "team_invite":
        return _invite(team, act)
    team.members.remove(act.by)
    if not team.members:
        del teams[act.booking]
    return ("TeamLeft",)


def _invite(team: TeamFacts, act: Act) -> Answer:
    if act.person in team.members:
        return ("AlreadyMember",)
    if act.person not in team.invited:
        team.invited.append(act.person)
    return _kept(act.booking, team)


def _accept(team: TeamFacts, act: Act) -> Answer:
    if act.by not in (*team.members, *team.invited):
        return ("NotInvited",)
    if act.by in team.invited:
        team.invited.remove(act.by)
        team.members.append(act.by)
    return _kept(act.booking, team)


def _kept(token: str, team: TeamFacts) -> Answer:
    return ("TeamKept", token, tuple(team.members), tuple(team.invited))
