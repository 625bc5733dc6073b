"""POSTs to /graphql that the server serves without ASGI."""

from slotlock.api.middleware.load_shedding import ProcessLimit
from slotlock.graphql.transport.http import EVENT_STREAM, HttpEndpoint
from slotlock.graphql.transport.http_messages import HttpPost

PATH = b"/graphql"


class GraphQLPosts:
    """The endpoint of /graphql and the limit of the process, for POSTs that bypass middleware."""

    def __init__(self, endpoint: HttpEndpoint, limit: ProcessLimit, *, has_cors: bool) -> None:
        self.respond = endpoint.respond
        self.limit = limit
        self._has_cors = has_cors

    def accepts(self, post: HttpPost) -> bool:
        """Return whether a request needs nothing that only middleware does.

        Event streams count as sockets, and responses to pages of other origins have headers.
        """
        return post.media_type != EVENT_STREAM and not (self._has_cors and "origin" in post.headers)
