"""Middleware that authenticates again before each root field of a mutation but the first.

The root fields of a mutation run one after the other. An earlier field, or another request, may end
the session or change the role before a later field starts.
"""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

from graphql import GraphQLResolveInfo

from slotlock.graphql.context import Context

Resolver = Callable[..., Any]
ResolveInfo = GraphQLResolveInfo[Context]


class ReauthenticateMiddleware:
    """graphql-core middleware for the execution of one mutation."""

    def __init__(self) -> None:
        self._has_begun = False

    def resolve(
        self, resolver: Resolver, source: object, info: ResolveInfo, /, **arguments: Any
    ) -> Any:
        """Call the resolver of a field, after a new authentication if the field is a later root."""
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
