"""What both transports share: the documents, who asks, and the streams that are open."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from slotlock.auth.authentication import (
    VerifiedToken,
    load_caller,
    user_to_charge,
    verify_authorization,
)
from slotlock.auth.container import Auth
from slotlock.auth.tokens import BadTokenError
from slotlock.graphql.context import UNKNOWN_CLIENT, ClientInfo, Context, Identity
from slotlock.graphql.core.errors import ErrorCode, RateLimitedError, error_body
from slotlock.graphql.execution.documents import DocumentCache, DocumentError, Operation
from slotlock.graphql.execution.executor import GraphQLResponse, record_metrics
from slotlock.graphql.limits.complexity import MAX_VARIABLE_VALUES, has_too_many_values
from slotlock.graphql.limits.connections import ConnectionLimit
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.services.container import Services


@dataclass(frozen=True, slots=True)
class GraphQLServer:
    """The wiring of the GraphQL endpoint, built once by the lifespan."""

    services: Services
    auth: Auth
    public_reads: bool
    development: bool
    allowed_origins: frozenset[str]
    document_cache: DocumentCache
    rate_limits: OperationRateLimits
    streams_per_user: ConnectionLimit
    streams_per_address: ConnectionLimit
    # One new document at a time, and others have a turn before each: to read one takes long.
    parse_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    # When the process is about to stop: what streams wait for, and what sockets want called.
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    shutdown_callbacks: set[Callable[[], Awaitable[None]]] = field(default_factory=set)
    # Queries and mutations that answer in streams of events, until they are done.
    must_finish: set[asyncio.Future[GraphQLResponse]] = field(default_factory=set)

    async def stop(self) -> None:
        """End every stream and close every socket."""
        self.stopping.set()
        await asyncio.gather(*(farewell() for farewell in list(self.shutdown_callbacks)))
        await asyncio.gather(*self.must_finish, return_exceptions=True)

    async def authenticate(self, authorization: str | None) -> Identity:
        """Return the caller, None without credentials, or the error that rejects them."""
        return await self._identify(verify_authorization(self.auth, authorization))

    async def _identify(self, token: VerifiedToken) -> Identity:
        try:
            return await load_caller(self.auth, token)
        except BadTokenError as error:
            return error

    async def parse_request(
        self, payload: object, authorization: str | None, client: ClientInfo
    ) -> "GraphQLRequest":
        """The request in a decoded body or message. Errors: DocumentError, RateLimitedError."""
        wanted = _parse_raw_request(payload)
        if not self.document_cache.is_cached(wanted.text):
            user_id = user_to_charge(self.auth, verify_authorization(self.auth, authorization))
            costs = {OperationKind.DOCUMENT: 1 + len(wanted.text) // 1000}
            await self.rate_limits.wait(self.rate_limits.charge(costs, user_id, client.address))
            async with self.parse_lock:
                await asyncio.sleep(0)
                return self._build_request(wanted)
        return self._build_request(wanted)

    def _build_request(self, raw_request: "_RawRequest") -> "GraphQLRequest":
        operation = self.document_cache.resolve_operation(
            raw_request.text, raw_request.operation_name
        )
        return GraphQLRequest(operation, raw_request.variables)

    async def authenticate_and_charge(
        self, operation: Operation, authorization: str | None, client: ClientInfo
    ) -> Identity:
        """Authenticate the caller while the operation is charged. Raises: RateLimitedError."""
        token = verify_authorization(self.auth, authorization)
        pending_charge = self.rate_limits.charge(
            operation.costs, user_to_charge(self.auth, token), client.address
        )
        try:
            identity = await self._identify(token)
        except Exception:
            record_metrics(
                operation, GraphQLResponse({"errors": [error_body(ErrorCode.INTERNAL, "")]})
            )
            raise
        try:
            await self.rate_limits.wait(pending_charge)
        except RateLimitedError as limited:
            record_metrics(operation, GraphQLResponse({"errors": [limited.as_error]}))
            raise
        return identity

    def create_context(self, identity: Identity, client: ClientInfo = UNKNOWN_CLIENT) -> Context:
        """Fresh surroundings for one operation."""
        return Context(
            self.services,
            self.auth,
            self.rate_limits,
            identity,
            client,
            public_reads=self.public_reads,
        )

    def allows_origin(self, origin: str | None, host: str | None) -> bool:
        """Whether a page of this origin may open a socket; programs that are no page have none."""
        if origin is None or origin in self.allowed_origins or "*" in self.allowed_origins:
            return True
        # Not urlsplit: it raises at what no browser would send.
        return host is not None and origin.partition("://")[2].lower() == host.lower()


@dataclass(frozen=True, slots=True)
class GraphQLRequest:
    """What a client sent: an operation of a document, with its variables."""

    operation: Operation
    variables: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class _RawRequest:
    text: str
    operation_name: str | None
    variables: dict[str, Any] | None


def _parse_raw_request(payload: object) -> _RawRequest:
    if isinstance(payload, list):
        raise _bad_input("Batches are not supported: send one request at a time.")
    if not isinstance(payload, dict):
        raise _bad_input("A GraphQL request is a JSON object.")
    query, variables = payload.get("query"), payload.get("variables")
    name, extensions = payload.get("operationName"), payload.get("extensions")
    if not isinstance(query, str) or not query:
        raise _bad_input("`query` is needed: the text of a GraphQL document.")
    if variables is not None and not isinstance(variables, dict):
        raise _bad_input("`variables` is an object or null.")
    if has_too_many_values(variables):
        text = (
            f"Variables hold at most {MAX_VARIABLE_VALUES} values, "
            "those in lists and objects included."
        )
        raise DocumentError([error_body(ErrorCode.LIMIT_EXCEEDED, text)])
    if extensions is not None and not isinstance(extensions, dict):
        raise _bad_input("`extensions` is an object or null.")
    if name is not None and not isinstance(name, str):
        raise _bad_input("`operationName` is a string or null.")
    return _RawRequest(query, name or None, variables)


def _bad_input(message: str) -> DocumentError:
    return DocumentError([error_body(ErrorCode.BAD_USER_INPUT, message)])
