"""HTTP connections that ignore upgrades to unsupported protocols (RFC 9110, 7.8).

The parser stops at every request that asks for an upgrade. uvicorn would then lose the body of the
request, or read the body as another request.
"""

from array import array
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from slotlock.api.server.raw_response import raw_response


class _NoUpgradeParser(HttpRequestParser):
    """Continues after a request whose upgrade is ignored."""

    def __init__(self, connection: "NoUpgradeProtocol") -> None:
        self._connection = connection
        self._start()

    def _start(self) -> None:
        super().__init__(self._connection)
        # As in uvicorn: respond to a request even if more data follows "Connection: close".
        self.set_dangerous_leniencies(lenient_data_after_close=True)

    def feed_data(self, data: "bytes | bytearray | memoryview | array[int]") -> None:
        rest = memoryview(data)
        while (length := self._feed_until_upgrade(rest)) is not None:
            rest, header = rest[length:], self._connection.header_without_upgrade()
            self._start()  # it reads nothing after `Connection: close, Upgrade`
            super().feed_data(header)

    def _feed_until_upgrade(self, data: memoryview) -> int | None:
        """Return how many bytes precede an ignored upgrade; None after reading all of them."""
        try:
            super().feed_data(data)
        except HttpParserUpgrade as upgrade:
            if not self._connection.should_ignore_upgrade():
                raise
            length: int = upgrade.args[0]
            return length
        return None


class NoUpgradeProtocol(HttpToolsProtocol):
    """Reads a request with an unsupported upgrade as if it had none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser = _NoUpgradeParser(self)

    # The response to a malformed request that arrived behind others in progress.
    _rejection = b""

    def send_400_response(self, msg: str) -> None:
        """Reject malformed HTTP, with the security headers that uvicorn omits."""
        self._reject(raw_response(400, msg))

    def _reject(self, response: bytes) -> None:
        """Respond to a malformed request, after the responses to those before it, and close."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.write(response)
            self.transport.close()
        elif cycle.more_body:  # the body of this request is malformed
            if not (cycle.response_started or self.pipeline):
                self.transport.write(response)
            self.transport.close()
        else:
            self._rejection = response

    def should_ignore_upgrade(self) -> bool:
        """Return whether the latest request asks for an unsupported upgrade."""
        return self.parser.should_upgrade() and not self._should_upgrade()

    def header_without_upgrade(self) -> bytes:
        """Return the header of the latest request without its upgrade.

        Raises:
            HttpParserError: the request is a CONNECT, which asks for a proxy.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            raise HttpParserError("This server is not a proxy.")
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_headers_complete(self) -> None:
        """Process a header, unless the parser reads it again without its upgrade."""
        if not self.should_ignore_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Process the end of a request, unless the parser reads it again."""
        if not self.should_ignore_upgrade():
            super().on_message_complete()
