"""Middleware that checks the caller's session again before the second and later root fields.

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


class SessionRecheckMiddleware:
    """graphql-core middleware for one execution of a mutation with several root fields."""

    def __init__(self) -> None:
        self._has_begun = False

    def resolve(
        self, resolver: Resolver, source: object, info: ResolveInfo, /, **arguments: Any
    ) -> Any:
        """Resolve a field, after a recheck of the session if it is a later root field."""
        if info.path.prev is None and self._has_begun:
            return _recheck_and_resolve(resolver, source, info, arguments)
        self._has_begun = True
        return resolver(source, info, **arguments)


async def _recheck_and_resolve(
    resolver: Resolver, source: object, info: ResolveInfo, arguments: dict[str, Any]
) -> Any:
    await info.context.recheck_session()
    result = resolver(source, info, **arguments)
    return await result if isawaitable(result) else result
