"""HTTP connections on which an upgrade to what nobody here speaks is ignored (RFC 9110, 7.8).

The parser stops at whatever asks for one: uvicorn would lose its body, or read it as a request.
"""

from array import array
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from slotlock.api.server.raw_response import raw_response


class _NoUpgradeParser(HttpRequestParser):
    """Reads on where a request that asks for an upgrade gets none."""

    def __init__(self, connection: "NoUpgradeProtocol") -> None:
        super().__init__(connection)
        self._connection = connection
        # As uvicorn's own: a request is answered even if more comes than was said.
        self.set_dangerous_leniencies(lenient_data_after_close=True)

    def feed_data(self, data: "bytes | bytearray | memoryview | array[int]") -> None:
        rest = memoryview(data)
        while (read := self._feed_until_upgrade(rest)) is not None:
            rest = rest[read:]
            super().feed_data(self._connection.header_without_upgrade())

    def _feed_until_upgrade(self, data: memoryview) -> int | None:
        """How many bytes are read before an upgrade is ignored; None if all are."""
        try:
            super().feed_data(data)
        except HttpParserUpgrade as upgrade:
            if not self._connection.should_ignore_upgrade():
                raise
            read: int = upgrade.args[0]
            return read
        return None


class NoUpgradeProtocol(HttpToolsProtocol):
    """A connection of which a request with such an upgrade is read as if it had none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.parser = _NoUpgradeParser(self)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, as uvicorn does."""
        self.transport.write(raw_response(400, msg))
        self.transport.close()

    def should_ignore_upgrade(self) -> bool:
        """Whether the request that was read last asks for an upgrade that it does not get."""
        return self.parser.should_upgrade() and not self._should_upgrade()

    def header_without_upgrade(self) -> bytes:
        """The header of that request without the upgrade. Errors: HttpParserError for a tunnel."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            raise HttpParserError("This is no proxy.")
        version = self.parser.get_http_version().encode()
        lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def on_headers_complete(self) -> None:
        """A header is whole, or comes once more without the upgrade."""
        if not self.should_ignore_upgrade():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is whole, unless it comes once more."""
        if not self.should_ignore_upgrade():
            super().on_message_complete()
