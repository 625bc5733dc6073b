"""A webhook never reaches the own network, whatever its URL looks like."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from slotlock.domain.notifications.webhooks import parse_url
from slotlock.domain.shared.problems import Problem
from slotlock.infrastructure.webhooks.public_addresses import NO_PUBLIC_ADDRESS, is_public
from slotlock.infrastructure.webhooks.webhook_client import open_webhook_client

# Forms of the own host that the client or the resolver of the system understands.
OWN_HOST = [
    "localhost",
    "LOCALHOST",
    "localhost.",
    "127.0.0.1",
    "127.1",
    "127.0.0.1.",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "0",
    "0.0.0.0",  # noqa: S104 - it is refused
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "\u217cocalhost",
    "localhost。",
    "localhost%2e",
    "127｡0｡0｡1",
    "127.000.000.001",
    "127.0.0.1%2e",
    "127.0.0.1%00.receiver.test",
    "0x7f.0.0.1",
    "0x7F000001.",
    "017700000001",
    "0x0",
    "[::1%lo]",
    "[::1%25lo]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[v1.127.0.0.1]",
    "receiver.test@127.0.0.1",
    "receiver.test:443@127.0.0.1",
    "receiver.test\\@127.0.0.1",
]
# Of these, the ones that are names or IP addresses as everybody writes them.
USUAL = [
    *("localhost", "LOCALHOST", "localhost.", "127.0.0.1", "127.255.255.254", "0.0.0.0"),  # noqa: S104
    *("[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    *("[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]"),
]
UNUSUAL = [
    *(host for host in OWN_HOST if host not in USUAL),
    *("[::1].", "[::1]x", "x[::1]", "[::1].:443", "[v1.a]", "[1.2.3.4]", "1.2.3", "1.2.3.4.5"),
    *(".", "a..b", ".a", "a b", "a%2eb", "a\\b", "a:0", "\uff4ca.test", f"{'x' * 64}.test"),
]
# What a name may resolve to, or a literal may be.
FORBIDDEN = [
    "127.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",  # metadata of most clouds
    "169.254.170.2",  # credentials of containers
    "100.100.100.200",  # metadata of Alibaba
    "192.0.0.192",  # metadata of Oracle
    "168.63.129.16",  # the host in Azure
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104 - it is refused
    "192.0.2.1",
    "198.18.0.1",
    "192.88.99.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::ffff:10.0.0.1",
    "::ffff:8.8.8.8",
    "::7f00:1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
    "fe80::1",
    "fe80::1%lo",
    "fc00::1",
    "fd00:ec2::254",  # metadata of Amazon
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "3fff::1",
]


class NameServer(AbstractResolver):
    """Resolves every name to these addresses."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - the library passes it
    ) -> list[ResolveResult]:
        """Return the addresses. A name without one is unknown."""
        if not self._addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Release nothing."""


class Listener:
    """The own network: it counts its connections."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.count = 0


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    """Yield a server of the own host, for IPv4 and, where there is one, IPv6."""

    async def count(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.count += 1
        writer.close()

    server = await asyncio.start_server(count, "0.0.0.0", 0)  # noqa: S104 - it is to be reached
    found = Listener(server.sockets[0].getsockname()[1])
    async with server:
        yield found


@pytest.mark.parametrize("host", OWN_HOST)
async def test_no_form_of_the_own_host_is_called(host: str, listener: Listener) -> None:
    async with open_webhook_client(allow_private=False) as client:
        response = await client.post(f"https://{host}:{listener.port}/", b"{}", {})
    assert response.status is None
    assert listener.count == 0


@pytest.mark.parametrize("host", UNUSUAL)
def test_an_unusual_notation_of_a_host_is_refused_before_it_is_called(host: str) -> None:
    assert isinstance(parse_url(f"https://{host}/hook", allow_http=False), Problem)


@pytest.mark.parametrize(
    "host",
    [
        *USUAL,
        *("receiver.test", "receiver.test.", "a-b.x_y.test:8443", "xn--mnchen-3ya.test"),
        *("münchen.test", "例え.テスト", "1.1.1.1:443", "[2606:4700::1]:8443"),
        *("4you.test", "3com", "0x.test", "a:"),
    ],
)
def test_usual_names_and_addresses_are_valid(host: str) -> None:
    url = parse_url(f"https://{host}/hook?a=b", allow_http=False)
    assert not isinstance(url, Problem)
    assert url.isascii()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "127。0。0。1"])
async def test_without_the_guard_the_own_host_is_called(host: str, listener: Listener) -> None:
    async with open_webhook_client(allow_private=True) as client:
        await client.post(f"https://{host}:{listener.port}/", b"{}", {})
    assert listener.count > 0


@pytest.mark.parametrize("address", FORBIDDEN)
async def test_a_forbidden_address_is_refused_as_a_literal_and_behind_a_name(address: str) -> None:
    literal = f"[{address}]" if ":" in address else address
    for host in (literal, "receiver.test"):
        resolver = NameServer(address)
        async with open_webhook_client(allow_private=False, resolver=resolver) as client:
            response = await client.post(f"https://{host}/hook", b"{}", {})
        assert response.status is None
        assert response.text == NO_PUBLIC_ADDRESS


@pytest.mark.parametrize("addresses", [(), ("10.0.0.1",), ("10.0.0.1", "::1")])
async def test_a_response_does_not_say_whether_a_name_of_the_own_network_exists(
    addresses: Sequence[str],
) -> None:
    resolver = NameServer(*addresses)
    async with open_webhook_client(allow_private=False, resolver=resolver) as client:
        response = await client.post("https://intranet/hook", b"{}", {})
    assert (response.status, response.text) == (None, NO_PUBLIC_ADDRESS)


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_each_of_several_addresses_of_a_name_is_checked(
    is_guarded: bool, listener: Listener
) -> None:
    resolver = NameServer("10.0.0.1" if is_guarded else "127.0.0.2", "::1", "127.0.0.1")
    async with open_webhook_client(allow_private=not is_guarded, resolver=resolver) as client:
        await client.post(f"https://receiver.test:{listener.port}/", b"{}", {})
    assert (listener.count == 0) is is_guarded


@pytest.mark.parametrize("address", ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_public(address)


async def test_a_url_without_tls_is_refused() -> None:
    async with open_webhook_client(allow_private=False) as client:
        response = await client.post("http://receiver.test/", b"{}", {})
    assert "https" in response.text


@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY", "all_proxy"])
async def test_a_proxy_of_the_environment_is_not_used(
    variable: str, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"http://127.0.0.1:{listener.port}")
    async with open_webhook_client(allow_private=False, resolver=NameServer("10.0.0.1")) as client:
        response = await client.post("https://receiver.test/", b"{}", {})
    assert response.text == NO_PUBLIC_ADDRESS
    assert listener.count == 0
