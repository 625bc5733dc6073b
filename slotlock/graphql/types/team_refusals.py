"""Why something about a team was refused."""

from typing import Self

import strawberry
from strawberry import field

from slotlock.domain import team_outcomes as outcomes
from slotlock.domain.teams import MAX_INVITATIONS_PER_ADDRESS, MAX_TEAM_SIZE, MAX_TEAMS_PER_USER
from slotlock.graphql.types.refusals import Refusal, RefusalCode


@strawberry.type(description="No such team, or none that the caller is in.")
class TeamNotFound(Refusal):
    team_id: strawberry.ID = field(description="The id that was asked for.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        return cls(
            code=RefusalCode.TEAM_NOT_FOUND,
            message="There is no such team.",
            team_id=strawberry.ID(global_id),
        )


@strawberry.type(description="The team has as many members and open invitations as there may be.")
class TeamFull(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        message = f"A team has at most {MAX_TEAM_SIZE} members and open invitations."
        return cls(code=RefusalCode.TEAM_FULL, message=message)


@strawberry.type(description="Who is invited is in the team already.")
class AlreadyMember(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        return cls(code=RefusalCode.ALREADY_MEMBER, message="They are in this team already.")


@strawberry.type(description="There is no such open invitation.")
class NotInvited(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        return cls(code=RefusalCode.NOT_INVITED, message="There is no such invitation any more.")


@strawberry.type(description="The caller is in as many teams as a person may be.")
class TooManyTeams(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        message = f"You are in {MAX_TEAMS_PER_USER} teams. Please leave one first."
        return cls(code=RefusalCode.TOO_MANY_TEAMS, message=message)


@strawberry.type(description="The address has as many open invitations as an address may have.")
class TooManyInvitations(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        message = (
            f"This address has {MAX_INVITATIONS_PER_ADDRESS} invitations that are not answered."
        )
        return cls(code=RefusalCode.TOO_MANY_INVITATIONS, message=message)


@strawberry.type(description="Too many people are changing this at once.")
class TeamBusy(Refusal):
    retry_after_ms: int = field(description="Asking again is worth it after this many ms.")

    @classmethod
    def from_domain(cls, outcome: outcomes.TeamBusy) -> Self:
        return cls(
            code=RefusalCode.TEAM_BUSY,
            message="Others are changing this team right now. Please try again.",
            retry_after_ms=outcome.retry_after_ms,
        )
