"""The root fields of a mutation come one after the other, each for who asks by then.

One may end the session, and so may others while it waits for its turn: what comes after it must not
be done for somebody who is out when it begins.
"""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from graphql import GraphQLResolveInfo

from slotlock.graphql.context import Context

Resolver = Callable[..., Any]
ResolveInfo = GraphQLResolveInfo[Context]


class ReauthenticateMiddleware:
    """Middleware for one execution: looks at the identity again before each root but the first."""

    def __init__(self) -> None:
        self._has_begun = False

    def resolve(
        self, resolver: Resolver, source: object, info: ResolveInfo, /, **arguments: Any
    ) -> Any:
        """What the field's own resolver says."""
        if info.path.prev is None and self._has_begun:
            return _reauthenticate_and_resolve(resolver, source, info, arguments)
        self._has_begun = True
        return resolver(source, info, **arguments)


async def _reauthenticate_and_resolve(
    resolver: Resolver, source: object, info: ResolveInfo, arguments: dict[str, Any]
) -> Any:
    await info.context.reauthenticate()
    result = resolver(source, info, **arguments)
    return await result if isawaitable(result) else result
