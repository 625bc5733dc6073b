"""What both transports share: the documents, who asks, and the streams that are open."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from slotlock.auth.auth import Auth
from slotlock.auth.identity import claimed, identify
from slotlock.auth.tokens import BadTokenError
from slotlock.desk.desk import Desk
from slotlock.graphql.bounds import Bound
from slotlock.graphql.context import UNKNOWN, Client, Context, Identity
from slotlock.graphql.documents import DocumentError, Documents, Operation
from slotlock.graphql.errors import Code, RateLimitedError, failure
from slotlock.graphql.execution import Answer, count
from slotlock.graphql.kinds import Kind
from slotlock.graphql.rates import Rates
from slotlock.graphql.variables import MAX_VALUES, too_many


@dataclass(frozen=True, slots=True)
class Conversation:
    """The wiring of the GraphQL endpoint, built once by the lifespan."""

    desk: Desk
    auth: Auth
    public_reads: bool
    development: bool
    allowed_origins: frozenset[str]
    documents: Documents
    rates: Rates
    streams_per_person: Bound
    streams_per_address: Bound
    # One new document at a time, and others have a turn before each: to read one takes long.
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    # When the process is about to stop: what streams wait for, and what sockets want called.
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    farewells: set[Callable[[], Awaitable[None]]] = field(default_factory=set)
    # Queries and mutations that answer in streams of events, until they are done.
    unbroken: set[asyncio.Future[Answer]] = field(default_factory=set)

    async def stop(self) -> None:
        """End every stream and close every socket."""
        self.stopping.set()
        await asyncio.gather(*(farewell() for farewell in list(self.farewells)))
        await asyncio.gather(*self.unbroken, return_exceptions=True)

    async def identity(self, authorization: str | None) -> Identity:
        """Who asks, or why that cannot be told."""
        try:
            return await identify(self.auth, authorization)
        except BadTokenError as error:
            return error

    async def read(
        self, sent: object, authorization: str | None, client: Client
    ) -> "GraphQLRequest":
        """The request in a decoded body or message. Errors: DocumentError, RateLimitedError."""
        wanted = _wanted(sent)
        if not self.documents.remembers(wanted.text):
            whose = claimed(self.auth, authorization)
            weights = {Kind.DOCUMENT: 1 + len(wanted.text) // 1000}
            await self.rates.allow(self.rates.ask(weights, whose, client.address))
            async with self.reading:
                await asyncio.sleep(0)
                return self._request(wanted)
        return self._request(wanted)

    def _request(self, wanted: "_Wanted") -> "GraphQLRequest":
        operation = self.documents.operation(wanted.text, wanted.operation_name)
        return GraphQLRequest(operation, wanted.variables)

    async def admit(
        self, operation: Operation, authorization: str | None, client: Client
    ) -> Identity:
        """Who asks, found out while what they ask is counted. Errors: RateLimitedError."""
        whose = claimed(self.auth, authorization)
        asked = self.rates.ask(operation.weights, whose, client.address)
        try:
            identity = await self.identity(authorization)
        except Exception:
            count(operation, Answer({"errors": [failure(Code.INTERNAL, "")]}))
            raise
        try:
            await self.rates.allow(asked)
        except RateLimitedError as limited:
            count(operation, Answer({"errors": [limited.shown]}))
            raise
        return identity

    def context(self, identity: Identity, client: Client = UNKNOWN) -> Context:
        """Fresh surroundings for one operation."""
        return Context(
            self.desk, self.auth, self.rates, identity, client, public_reads=self.public_reads
        )

    def welcomes(self, origin: str | None, host: str | None) -> bool:
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
class _Wanted:
    text: str
    operation_name: str | None
    variables: dict[str, Any] | None


def _wanted(sent: object) -> _Wanted:
    if isinstance(sent, list):
        raise _bad("Batches are not supported: send one request at a time.")
    if not isinstance(sent, dict):
        raise _bad("A GraphQL request is a JSON object.")
    query, variables = sent.get("query"), sent.get("variables")
    name, extensions = sent.get("operationName"), sent.get("extensions")
    if not isinstance(query, str) or not query:
        raise _bad("`query` is needed: the text of a GraphQL document.")
    if variables is not None and not isinstance(variables, dict):
        raise _bad("`variables` is an object or null.")
    if too_many(variables):
        text = f"Variables hold at most {MAX_VALUES} values, those in lists and objects included."
        raise DocumentError([failure(Code.LIMIT_EXCEEDED, text)])
    if extensions is not None and not isinstance(extensions, dict):
        raise _bad("`extensions` is an object or null.")
    if name is not None and not isinstance(name, str):
        raise _bad("`operationName` is a string or null.")
    return _Wanted(query, name or None, variables)


def _bad(message: str) -> DocumentError:
    return DocumentError([failure(Code.BAD_USER_INPUT, message)])
