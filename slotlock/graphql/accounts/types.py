"""Sessions as their users see them."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.auth import sessions
from slotlock.domain.users.user import UserId
from slotlock.graphql.core.ids import session_global_id
from slotlock.graphql.core.node import Node
from slotlock.graphql.users.types import User

NEW_PASSWORD = (
    "The new password, 8 to 128 characters. "  # noqa: S105
    "It must not be common, a simple pattern, or contain the name or the e-mail address of the "
    "user."
)
END_CALENDAR_FEED = (
    "Whether the private calendar feed of the user ends, too. By default the calendars that "
    "subscribed to it continue."
)


@strawberry.type(description="The tokens of a user who has just signed in or refreshed a session.")
class Session:
    access_token: str = field(
        description="The token for the Authorization header, after `Bearer `."
    )
    refresh_token: str = field(
        description="The secret that `refreshSession` exchanges for new tokens, once and within 30 "
        "days."
    )
    expires_at: datetime = field(
        description="When the access token expires: 15 minutes after it was issued."
    )
    user: User = field(description="The user who is signed in.")

    @classmethod
    def from_domain(cls, session: sessions.SignedInSession) -> Self:
        """Show new tokens to their user."""
        return cls(
            access_token=session.access_token,
            refresh_token=session.refresh_token,
            expires_at=session.expires_at,
            user=User.for_self(session.user),
        )


@strawberry.type(description="An open session of the caller.")
class OpenSession(Node):
    created_at: datetime = field(description="When the user signed in.")
    last_used_at: datetime = field(
        description="When the user signed in or last refreshed the session."
    )
    client: str | None = field(
        description="The name that the client program gave itself (its User-Agent header), at most "
        "200 characters. Programs can claim any name."
    )
    current: bool = field(description="Whether this request belongs to the session.")

    @classmethod
    def from_domain(cls, session: sessions.SessionInfo, user_id: UserId) -> Self:
        """Show an open session to its user."""
        return cls(
            id=session_global_id(user_id, session.key),
            created_at=session.created_at,
            last_used_at=session.last_used_at,
            client=session.user_agent,
            current=session.current,
        )
