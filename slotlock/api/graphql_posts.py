"""POSTs to /graphql that the server serves without ASGI."""

from slotlock.api.middleware.load_shedding import ProcessLimit
from slotlock.graphql.transport.http import EVENT_STREAM, HttpEndpoint
from slotlock.graphql.transport.http_messages import HttpPost, HttpResponse
from slotlock.infrastructure.telemetry.observed_requests import RequestObserver

PATH = b"/graphql"


class GraphQLPosts:
    """The endpoint of /graphql and the limit of the process, for POSTs that bypass middleware."""

    def __init__(
        self,
        endpoint: HttpEndpoint,
        limit: ProcessLimit,
        observer: RequestObserver | None = None,
        *,
        has_cors: bool,
    ) -> None:
        self._endpoint = endpoint
        self._observer = observer
        self.respond = endpoint.respond if observer is None else self._respond_observed
        self.limit = limit
        self._has_cors = has_cors

    def accepts(self, post: HttpPost) -> bool:
        """Return whether a request needs nothing that only middleware does.

        Event streams count as sockets, and responses to pages of other origins have headers.
        """
        return post.media_type != EVENT_STREAM and not (self._has_cors and "origin" in post.headers)

    async def _respond_observed(self, post: HttpPost) -> HttpResponse:
        if self._observer is None:
            raise RuntimeError("only an observer makes requests observed")
        with self._observer.observe("POST", "/graphql", post.headers, post.request_id) as observed:
            response = await self._endpoint.respond(post)
            observed.status = response.status
            return response
