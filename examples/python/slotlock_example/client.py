"""A signed-in client: requests over HTTP, subscriptions over a WebSocket, and fresh tokens."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from gql import Client, GraphQLRequest
from gql.client import AsyncClientSession
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.exceptions import TransportError, TransportQueryError
from gql.transport.websockets import WebsocketsTransport
from websockets.exceptions import ConnectionClosed

from slotlock_example.operations import LOGIN, REFRESH_SESSION, REGISTER
from slotlock_example.retry import ApiError, backoff_s, with_retry

FORBIDDEN = 4403
# The server needs up to 6 s, and 5 s more for the `waitMs` of this example.
TIMEOUT_S = 20


@dataclass(slots=True)
class SlotlockClient:
    """Store `access_token` and `refresh_token` to stay signed in after a restart."""

    url: str
    http: AsyncClientSession
    access_token: str | None = None
    refresh_token: str | None = None
    _refresh_task: "asyncio.Task[None] | None" = None

    async def login(self, email: str, password: str) -> Any:
        """Sign in and return the session or a refusal; raises ApiError."""
        credentials = {"email": email, "password": password}
        return self._open(await with_retry(self._post, LOGIN, {"input": credentials}))

    async def register(self, name: str, email: str, password: str) -> Any:
        """Create an account and return the session or a refusal; raises ApiError.

        If the response was lost, the account may exist: then the password signs in.
        """
        account = {"name": name, "email": email, "password": password}
        try:
            return self._open(await self._post(REGISTER, {"input": account}))
        except ApiError as error:
            if not error.is_retryable:
                raise
            return await self.login(email, password)

    async def refresh(self) -> None:
        """Exchange the refresh token for new tokens, or sign out if the session has ended.

        Requests that need new tokens at the same time share one exchange.
        """
        if self._refresh_task is None or self._refresh_task.done():
            self._refresh_task = asyncio.create_task(self._exchange())
        await asyncio.shield(self._refresh_task)

    async def execute(self, document: str, **variables: Any) -> Any:
        """Send a query or mutation once and return the value of its field; raises ApiError."""
        token = self.access_token
        try:
            return await self._post(document, variables, token)
        except ApiError as error:
            if error.code != "UNAUTHENTICATED" or token is None:
                raise
        if self.access_token == token:
            await self.refresh()
        return await self._post(document, variables, self.access_token)

    async def subscribe(self, document: str, **variables: Any) -> AsyncGenerator[Any, None]:
        """Yield the values of a subscription, also across lost connections; raises ApiError."""
        request = GraphQLRequest(document, variable_values=variables)
        retries = 0
        while True:
            try:
                # A new transport for each connection has the newest token.
                async with Client(transport=self._socket()) as socket:
                    async for data in socket.subscribe(request):
                        retries = 0
                        yield _field(data)
                    return
            except TransportQueryError as error:
                raise _to_api_error(error) from None
            except (TransportError, ConnectionClosed, OSError) as error:
                if _close_code(error) == FORBIDDEN:
                    await self.refresh()
            await asyncio.sleep(backoff_s(retries))
            retries += 1

    def _socket(self) -> WebsocketsTransport:
        return WebsocketsTransport(
            self.url.replace("http", "ws", 1),
            init_payload=_authorization(self.access_token),
            subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
        )

    async def _exchange(self) -> None:
        # The same token may be sent again for 30 seconds, if the response was lost.
        variables = {"refreshToken": self.refresh_token}
        outcome = await with_retry(self._post, REFRESH_SESSION, variables)
        self.access_token, self.refresh_token = None, None
        self._open(outcome)

    def _open(self, outcome: Any) -> Any:
        if outcome["__typename"] == "Session":
            self.access_token = outcome["accessToken"]
            self.refresh_token = outcome["refreshToken"]
        return outcome

    async def _post(
        self, document: str, variables: dict[str, Any], token: str | None = None
    ) -> Any:
        request = GraphQLRequest(document, variable_values=variables)
        headers = _authorization(token)
        try:
            return _field(await self.http.execute(request, extra_args={"headers": headers}))
        except TransportQueryError as error:
            raise _to_api_error(error) from None
        except (TransportError, TimeoutError) as error:
            raise ApiError(str(error)) from error


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[SlotlockClient]:
    """Return a client without identity."""
    async with Client(transport=AIOHTTPTransport(url), execute_timeout=TIMEOUT_S) as http:
        yield SlotlockClient(url, http)


def _authorization(token: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


def _field(data: dict[str, Any]) -> Any:
    (value,) = data.values()
    return value


def _to_api_error(error: TransportQueryError) -> ApiError:
    first = (error.errors or [{}])[0]
    extensions = first.get("extensions", {})
    message = first.get("message", str(error))
    return ApiError(message, extensions.get("code"), extensions.get("retryAfterMs"))


def _close_code(error: BaseException | None) -> int | None:
    """Return the code with which the server closed the socket."""
    while error is not None:
        if isinstance(error, ConnectionClosed):
            return error.rcvd.code if error.rcvd else None
        error = error.__cause__
    return None
