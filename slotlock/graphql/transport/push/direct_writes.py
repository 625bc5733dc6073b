"""Messages that are written to a socket at once, without waiting for its client.

ASGI can only await a send. A server that can write at once offers it as an extension of the scope.
"""

from collections.abc import Callable

from starlette.types import Scope

from slotlock.domain.shared.value_object import value_object

EXTENSION = "slotlock.websocket.write"


@value_object
class DirectWrites:
    """The access of the application to the write buffer of one socket.

    `is_writable` is false while the client does not read, and once the socket closes. `frame`
    returns the bytes of a text message, uncompressed and the same for every socket. `write` sends
    these bytes; call it only while `is_writable`. The server runs the callback of `on_writable`
    when the client has read enough for further messages.
    """

    is_writable: Callable[[], bool]
    frame: Callable[[bytes], bytes]
    write: Callable[[bytes], None]
    on_writable: Callable[[Callable[[], None]], None]


def find_direct_writes(scope: Scope) -> DirectWrites | None:
    """Return the access to the socket of a scope; None if the server does not offer it."""
    extension = scope.get("extensions", {}).get(EXTENSION)
    return extension if isinstance(extension, DirectWrites) else None
