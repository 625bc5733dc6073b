"""The rules of teams in the model."""

from dataclasses import dataclass, field

from tests.support.model.operations import NormalizedOutcome, PlannedOperation


@dataclass
class ModelTeam:
    """A team with its members and invited users in order."""

    members: list[str]
    invited: list[str] = field(default_factory=list)


def apply_team_operation(
    teams: dict[str, ModelTeam], operation: PlannedOperation
) -> NormalizedOutcome:
    """Apply an operation on teams and return its outcome."""
    if operation.kind == "team_create":
        teams[operation.token] = ModelTeam([operation.caller_id])
        return _saved_outcome(operation.token, teams[operation.token])
    team = teams.get(operation.booking, ModelTeam([]))
    if operation.kind == "team_accept":
        return _accept(team, operation)
    if operation.caller_id not in team.members:
        return ("TeamNotFound",)
    if operation.kind == "team_invite":
        return _invite(team, operation)
    team.members.remove(operation.caller_id)
    if not team.members:
        del teams[operation.booking]
    return ("TeamLeft",)


def _invite(team: ModelTeam, operation: PlannedOperation) -> NormalizedOutcome:
    if operation.user_id in team.members:
        return ("AlreadyMember",)
    if operation.user_id not in team.invited:
        team.invited.append(operation.user_id)
    return _saved_outcome(operation.booking, team)


def _accept(team: ModelTeam, operation: PlannedOperation) -> NormalizedOutcome:
    if operation.caller_id not in (*team.members, *team.invited):
        return ("NotInvited",)
    if operation.caller_id in team.invited:
        team.invited.remove(operation.caller_id)
        team.members.append(operation.caller_id)
    return _saved_outcome(operation.booking, team)


def _saved_outcome(token: str, team: ModelTeam) -> NormalizedOutcome:
    return ("TeamSaved", token, tuple(team.members), tuple(team.invited))
