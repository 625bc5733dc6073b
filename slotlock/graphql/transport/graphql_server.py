"""The GraphQL server that both transports share: parsing, authentication and rate limits."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import field
from typing import Any

from slotlock.auth.authentication import (
    VerifiedToken,
    end_of_session,
    load_caller,
    user_to_charge,
)
from slotlock.auth.container import Auth
from slotlock.auth.session_streams import SessionStreams
from slotlock.auth.tokens import BadTokenError, TokenClaims
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.context import (
    DEFAULT_SITE,
    UNKNOWN_CLIENT,
    ClientInfo,
    Context,
    Identity,
    SiteSettings,
)
from slotlock.graphql.core.errors import ErrorCode, RateLimitedError, error_body
from slotlock.graphql.execution.document_cache import DocumentCache, DocumentError, Operation
from slotlock.graphql.execution.operation_executor import GraphQLResponse, record_metrics
from slotlock.graphql.execution.shared_operations import SharedOperations
from slotlock.graphql.execution.subscriptions import PushResponses, execute_stream
from slotlock.graphql.execution.trusted_documents import find_document
from slotlock.graphql.limits.complexity import MAX_VARIABLE_VALUES, has_too_many_values
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.limits.stream_limit import StreamLimit
from slotlock.graphql.transport.shutdown import ShutdownCoordinator
from slotlock.infrastructure.fair_scheduler import FairScheduler, SchedulerFullError
from slotlock.infrastructure.request_deadline import RequestDeadlines, within_deadline
from slotlock.infrastructure.telemetry import tracing
from slotlock.infrastructure.telemetry.observed_requests import RequestObserver
from slotlock.services.container import Services
from slotlock.services.live.fan_out import FanOutQueue

# New documents take up to a quarter of the time of a process.
REST_FACTOR = 3.0
# How long a new document waits. A usual one takes 5 ms, and the rest after it.
MAX_DOCUMENT_WAIT_S = 4.0
EXPECTED_DOCUMENT_S = 0.005 * (1 + REST_FACTOR)
NO_TEXT_MESSAGE = "`query` must be the text of a GraphQL document."
NOT_LISTED_MESSAGE = "The server executes only the documents on its list, and this is not one."
# Clients of Apollo's protocol read the message, and send the text of each document from then on. A
# client that has ids only is of another version than the server.
PERSISTED_QUERY_NOT_SUPPORTED = error_body(
    ErrorCode.PERSISTED_QUERY_NOT_SUPPORTED, "PersistedQueryNotSupported"
)


def _document_scheduler() -> FairScheduler[None]:
    return FairScheduler(
        max_running=1,
        max_wait_s=MAX_DOCUMENT_WAIT_S,
        expected_job_s=EXPECTED_DOCUMENT_S,
        rest_factor=REST_FACTOR,
    )


# An operation of a valid document, with its variables.
GraphQLRequest = tuple[Operation, dict[str, Any] | None]


@value_object
class GraphQLServer:
    """Everything a transport needs to serve operations; the lifespan builds it once."""

    services: Services
    auth: Auth
    public_reads: bool
    document_cache: DocumentCache
    rate_limits: OperationRateLimits
    streams_per_user: StreamLimit
    streams_per_address: StreamLimit
    session_streams: SessionStreams
    shutdown: ShutdownCoordinator
    site: SiteSettings = DEFAULT_SITE
    # None without access log and traces.
    observer: RequestObserver | None = None
    # Parsing blocks the event loop, so new documents are parsed one at a time.
    new_documents: FairScheduler[None] = field(default_factory=_document_scheduler)
    deadlines: RequestDeadlines = field(default_factory=RequestDeadlines)
    shared_operations: SharedOperations = field(default_factory=SharedOperations)
    fan_out: FanOutQueue = field(default_factory=FanOutQueue)

    async def load_identity(self, token: VerifiedToken) -> Identity:
        """Return the caller of a token, None without a token, or why the token is rejected."""
        try:
            return await load_caller(self.auth, token)
        except BadTokenError as error:
            return error

    async def parse_request(
        self, payload: object, token: VerifiedToken, client: ClientInfo
    ) -> GraphQLRequest:
        """Parse a decoded HTTP body or WebSocket payload.

        Raises:
            DocumentError: the request is malformed, its document invalid or too large.
            RateLimitedError: the client sent too many new documents, or many clients did.
        """
        text, operation_name, variables = _parse_raw_request(payload, self.document_cache)
        operation = self.document_cache.find_operation(text, operation_name)
        if operation is None:
            if not self.document_cache.is_cached(text):
                await self._parse_new(text, user_to_charge(self.auth, token), client.address)
            operation = self.document_cache.resolve_operation(text, operation_name, client.address)
        if tracing.is_on:
            fields = [name for _, name in operation.root_fields]
            tracing.describe_operation(operation.operation_type.value, operation.name, fields)
        return operation, variables

    async def _parse_new(self, text: str, user_id: UserId | None, address: str | None) -> None:
        """Parse a document into the cache, for the addresses of the clients by round robin."""
        if self.document_cache.only_known:
            raise _bad_input(NOT_LISTED_MESSAGE)

        async def parse() -> None:
            # A job of another address may have parsed it meanwhile.
            if not self.document_cache.is_cached(text):
                with self.rate_limits.document_charge(user_id):
                    self.document_cache.parse(text, address)

        while True:
            self.rate_limits.check_document(user_id)
            try:
                with within_deadline():
                    await self.new_documents.run(address, parse, key=text)
            except RateLimitedError:
                continue  # the job was charged to the first client that waited for it
            except SchedulerFullError as error:
                raise RateLimitedError(error.retry_after_ms) from None
            else:
                return

    async def authenticate_and_charge(
        self, operation: Operation, token: VerifiedToken, client: ClientInfo
    ) -> Identity:
        """Load the caller while Redis charges the operation to the rate limits.

        Call it within the deadline of the request, and `record_failure` if it fails.

        Raises:
            RateLimitedError: the user or the address has reached a limit.
        """
        auth, charge = self.auth, None
        if self.rate_limits.is_on:
            user_id = user_to_charge(auth, token)
            charge = self.rate_limits.charge(operation.costs, user_id, client.address)
        identity: Identity = None if isinstance(token, TokenClaims) else token
        if isinstance(token, TokenClaims):
            role = await auth.repositories.sessions.find_role(token.session_id)
            identity = (
                end_of_session(auth, token.session_id)
                if role is None
                else Caller(token.user_id, role, token.session_id, token.expires_at)
            )
        if charge is not None:
            await self.rate_limits.wait(charge)
        return identity

    def execute_stream(
        self, request: GraphQLRequest, context: Context, push: PushResponses | None = None
    ) -> AsyncGenerator[GraphQLResponse, None]:
        """Execute any operation; see `subscriptions.execute_stream`."""
        return execute_stream(*request, context, self.shared_operations, push)

    def create_context(self, identity: Identity, client: ClientInfo = UNKNOWN_CLIENT) -> Context:
        """Create the context of one operation."""
        return Context(
            self.services,
            self.auth,
            self.rate_limits,
            identity,
            client,
            self.public_reads,
            self.site,
        )


def _parse_raw_request(
    payload: object, documents: DocumentCache
) -> tuple[str, str | None, dict[str, Any] | None]:
    """Return the text of the document, the name of the operation and the variables."""
    if isinstance(payload, list):
        raise _bad_input("Batches are not supported: send one request at a time.")
    if not isinstance(payload, dict):
        raise _bad_input("A GraphQL request is a JSON object.")
    query, variables = payload.get("query"), payload.get("variables")
    name, extensions = payload.get("operationName"), payload.get("extensions")
    if not query and (query := find_document(documents.known, payload)) is None:
        raise _no_document(payload, documents)
    if not isinstance(query, str):
        raise _bad_input(NO_TEXT_MESSAGE)
    if variables is not None and not isinstance(variables, dict):
        raise _bad_input("`variables` must be an object or null.")
    if has_too_many_values(variables):
        text = (
            f"Variables may hold at most {MAX_VARIABLE_VALUES} values, "
            "including those in lists and objects."
        )
        raise DocumentError([error_body(ErrorCode.LIMIT_EXCEEDED, text)])
    if extensions is not None and not isinstance(extensions, dict):
        raise _bad_input("`extensions` must be an object or null.")
    if name is not None and not isinstance(name, str):
        raise _bad_input("`operationName` must be a string or null.")
    return query, name or None, variables


def _no_document(payload: Mapping[str, Any], documents: DocumentCache) -> DocumentError:
    """Return the error of a request without a text, or with an id that the server does not know."""
    id_, extensions = payload.get("documentId"), payload.get("extensions")
    if id_ is not None and not isinstance(id_, str):
        return _bad_input("`documentId` must be a string or null.")
    is_persisted = isinstance(extensions, dict) and extensions.get("persistedQuery")
    # A list is no reason to send the text instead; another version of the client is one for an id.
    if id_ is not None or (is_persisted and not documents.only_known):
        return DocumentError([PERSISTED_QUERY_NOT_SUPPORTED])
    return _bad_input(NOT_LISTED_MESSAGE if documents.only_known else NO_TEXT_MESSAGE)


def _bad_input(message: str) -> DocumentError:
    return DocumentError([error_body(ErrorCode.BAD_USER_INPUT, message)])


def record_failure(operation: Operation, error: Exception) -> None:
    """Count an operation that failed before its execution."""
    body = error_body(ErrorCode.INTERNAL, "")
    if isinstance(error, RateLimitedError):
        body = error.as_error
    record_metrics(operation, GraphQLResponse({"errors": [body]}))
