"""What the server reads without its parser is what the parser would read."""

import pytest
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from hypothesis import given
from hypothesis import strategies as st

from slotlock.api.server.direct_posts import MAX_HEADER_BYTES, find_post
from slotlock.api.server.request_headers import RejectedRequestError, validate_header


class Parsed:
    """The only request of a read, as the parser reads it with the checks of every header."""

    def __init__(self, data: bytes) -> None:
        self.target = self.body = b""
        self.headers: dict[str, str] = {}
        self._raw_headers: list[tuple[bytes, bytes]] = []
        self.complete_requests = 0
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(data)
        self.line = (self._parser.get_method(), self.target, self._parser.get_http_version())
        self.is_persistent = self._parser.should_keep_alive()

    def on_url(self, url: bytes) -> None:
        """Add a part of the target."""
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field."""
        self._raw_headers.append((name.lower(), value))
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Check the header."""
        validate_header(self._raw_headers, self.target, self._parser.get_http_version())
        assert len(self.headers) == len(self._raw_headers)

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        self.body += body

    def on_message_complete(self) -> None:
        """Count the request."""
        self.complete_requests += 1


def assert_read_as_the_parser_reads(data: bytes) -> None:
    """Check that a read is left to the parser, or that the parser reads the same in it."""
    found = find_post(data)
    if found is not None:
        parsed = Parsed(data)
        assert found == (parsed.headers, parsed.body)
        assert parsed.complete_requests == 1
        assert parsed.line == (b"POST", b"/graphql", "1.1")
        assert parsed.is_persistent


def post(fields: bytes = b"", body: bytes = b"body", length: bytes | None = None) -> bytes:
    """Return a POST with more fields."""
    length = b"%d" % len(body) if length is None else length
    head = b"POST /graphql HTTP/1.1\r\nHost: here\r\n" + fields
    return b"%sContent-Length: %s\r\n\r\n%s" % (head, length, body)


USUAL = [
    post(),
    post(body=b""),
    post(body=b"\r\n\r\n"),
    post(b"connection: keep-alive\r\nX-Empty:\r\nX-Blank: \r\n"),
    post(b"User-Agent: Mozilla/5.0 (X11; Linux) \xe9\r\nAccept:\ttext/html, */*;q=0.8\r\n").replace(
        b":\t", b":"
    ),
]
UNUSUAL = [
    b"",
    post()[:-1],
    post() + b"x",
    post()[:30],
    post().replace(b"POST", b"PUT"),
    post().replace(b"/graphql", b"/graphql?a"),
    post().replace(b"1.1", b"1.0"),
    post().replace(b"Host: here\r\n", b""),
    post().replace(b"here", b"a, b"),
    post(b"Host: here\r\n"),
    post(b"X: a\r\nx: b\r\n"),
    post(b"Connection: close\r\n"),
    post(b"Connection: Upgrade\r\nUpgrade: h2c\r\n"),
    post(b"Proxy-Connection: close\r\n"),
    post(b"Transfer-Encoding: chunked\r\n"),
    post(b"Expect: 100-continue\r\n"),
    post(b"X: a\r\n b\r\n"),
    post(b"X: a\0\r\n"),
    post(b"X: a\rb\r\n"),
    post(b"X: a\nb: c\r\n"),
    post(b"X : a\r\n"),
    post(b": a\r\n"),
    post(b"X: a \r\n"),
    post(b"X: %s\r\n" % (b"a" * MAX_HEADER_BYTES)),
    *(post(length=length) for length in (b"", b"3", b"+4", b"04", b"4, 4", b"-4", b"\xb2", b"4 ")),
    post(b"Content-Length: 4\r\n"),
]


@pytest.mark.parametrize("data", USUAL)
def test_usual_requests_need_no_parser(data: bytes) -> None:
    assert find_post(data) is not None
    assert_read_as_the_parser_reads(data)


@pytest.mark.parametrize("data", UNUSUAL)
def test_all_others_are_left_to_the_parser(data: bytes) -> None:
    assert find_post(data) is None


fields = st.lists(
    st.tuples(
        st.sampled_from(
            [b"Connection", b"content-length", b"Upgrade", b"Transfer-Encoding", b"TE", b"Host"]
        )
        | st.binary(max_size=3),
        st.sampled_from([b": ", b":", b" :", b":  ", b":\t"]),
        st.sampled_from([b"close", b"4", b"0", b"chunked", b"keep-alive", b"h2c", b"here"])
        | st.binary(max_size=5),
        st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b" \r\n"]),
    ).map(b"".join),
    max_size=3,
).map(b"".join)


@given(fields=fields, body=st.binary(max_size=5), end=st.sampled_from([b"", b"", b"x", b"\r\n"]))
def test_nothing_in_a_header_is_read_otherwise_than_by_the_parser(
    fields: bytes, body: bytes, end: bytes
) -> None:
    assert_read_as_the_parser_reads(post(fields, body) + end)


@given(data=st.binary(max_size=40), start=st.integers(0, 80), length=st.integers(0, 20))
def test_no_change_of_a_request_is_read_otherwise_than_by_the_parser(
    data: bytes, start: int, length: int
) -> None:
    request = post(b"Accept: a b\r\n")
    assert_read_as_the_parser_reads(request[:start] + data + request[start + length :])


def test_control_the_parser_accepts_and_rejects_what_the_checks_expect() -> None:
    assert Parsed(post()).complete_requests == 1
    for data, error in (
        (post(b"Transfer-Encoding: chunked\r\n"), HttpParserError),
        (post(b"Connection: Upgrade\r\nUpgrade: h2c\r\n"), HttpParserUpgrade),
    ):
        with pytest.raises(error):
            Parsed(data)
    with pytest.raises(HttpParserError) as caught:
        Parsed(post(b"Host: here\r\n"))
    assert isinstance(caught.value.__context__, RejectedRequestError)
