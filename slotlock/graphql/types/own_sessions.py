"""One's own sessions as they are seen, and what came of ending them or changing a password."""

from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import field

from slotlock.auth import own_sessions as auth
from slotlock.domain.people import UserId
from slotlock.graphql.ids import session_global_id
from slotlock.graphql.types.people import Node
from slotlock.graphql.types.refusals import InvalidInput, Refusal, RefusalCode
from slotlock.graphql.types.sessions import InvalidCredentials, TooManyAttempts


@strawberry.type(description="A session of the caller's that is open.")
class OpenSession(Node):
    created_at: datetime = field(description="When they signed in.")
    last_used_at: datetime = field(description="When they signed in or last refreshed it.")
    client: str | None = field(
        description="What the program that signed in calls itself, at most 200 characters of it; "
        "anybody can call themselves anything."
    )
    current: bool = field(description="Whether it is the one that asks.")

    @classmethod
    def from_domain(cls, session: auth.SessionInfo, user_id: UserId) -> Self:
        return cls(
            id=session_global_id(user_id, session.key),
            created_at=session.created_at,
            last_used_at=session.last_used_at,
            client=session.user_agent,
            current=session.current,
        )


@strawberry.type(description="No session of this id is open any more.")
class SessionEnded:
    session_id: strawberry.ID = field(description="The session.")


@strawberry.type(description="The id is of no session of the caller's.")
class SessionNotFound(Refusal):
    @classmethod
    def create(cls) -> Self:
        return cls(code=RefusalCode.SESSION_NOT_FOUND, message="You have no such session.")


@strawberry.type(description="The new password is good from now on, and the old one is not.")
class PasswordChanged:
    ended_sessions: int = field(description="How many other sessions of the caller's this ended.")


EndSessionResult = Annotated[
    SessionEnded | SessionNotFound,
    strawberry.union("EndSessionResult", description="What came of ending a session."),
]
ChangePasswordResult = Annotated[
    PasswordChanged | InvalidCredentials | InvalidInput | TooManyAttempts,
    strawberry.union("ChangePasswordResult", description="What came of changing a password."),
]
