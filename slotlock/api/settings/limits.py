"""The settings of limits and of logs; `settings.Settings` inherits them."""

from dataclasses import dataclass
from typing import Literal

from slotlock.api.settings.addresses import validate_networks
from slotlock.api.settings.fields import setting


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LimitSettings:
    """Rate limits, load limits and timeouts, and the proxies that name client addresses."""

    rate_limits: bool = setting(
        default=True,
        description="Whether rates are limited. "
        "Use `off` for benchmarks, simulations and closed networks. "
        "Guessing passwords stays limited in any case.",
    )
    rate_reads: int = setting(
        default=1200,
        ge=15,
        description="The number of root fields of queries that a user may send in a minute.",
    )
    rate_writes: int = setting(
        default=600,
        ge=15,
        description="The number of root fields of mutations that a user may send in a minute.",
    )
    rate_users_per_address: int = setting(
        default=300,
        ge=1,
        description="The rates of an address, as a multiple of those of a user. "
        "As many busy users can share an address.",
    )
    max_requests: int = setting(
        default=10_000,
        ge=1,
        description="The number of requests that a process handles at once. "
        "Requests that wait (`waitMs`) count, event streams do not. "
        "The server rejects further requests with 503 at once.",
    )
    max_sockets: int = setting(
        default=20_000,
        ge=2,
        description="The number of WebSockets and event streams that may be open in a process. "
        "The server rejects further ones with 503.",
    )
    streams_per_user: int = setting(
        default=20,
        ge=1,
        description="The number of WebSockets and event streams that a user may have open in a "
        "process.",
    )
    streams_per_address: int = setting(
        default=5_000,
        ge=1,
        description="The number of WebSockets and event streams that an address may have open in "
        "a process. "
        "It is less than `SLOTLOCK_MAX_SOCKETS`, so that one address leaves room for others.",
    )
    max_body: int = setting(
        default=64 * 1024,
        ge=1024,
        le=10_000_000,
        description="The largest body of a request to `/graphql`, and the largest message of a "
        "WebSocket, in bytes. "
        "A body of an organizer may have 2,500,000 bytes.",
    )
    header_timeout_s: float = setting(
        default=10,
        gt=0,
        description="The seconds within which the header of a request must arrive. "
        "They count from its first byte, or from the start of the connection. "
        "The server responds 408 to a slower client.",
    )
    body_timeout_s: float = setting(
        default=30,
        gt=0,
        description="The seconds within which the body of a request must arrive. "
        "Each 16 kB that have arrived add a second. "
        "The server responds 408 to a slower client.",
    )
    unread_timeout_s: float = setting(
        default=30,
        gt=0,
        description="The seconds within which a client must read 16 kB of a response. "
        "The server closes the connection of a slower client.",
    )
    max_unread: int = setting(
        default=256 * 1024 * 1024,
        ge=8 * 1024 * 1024,
        description="The bytes of responses that the clients of a process may leave unread. "
        "A single address may leave a quarter of them. "
        "Beyond that, the server closes the connection with the most unread bytes.",
    )
    trusted_proxies: tuple[str, ...] = setting(
        default=(),
        check=validate_networks,
        description="Addresses or networks of the reverse proxies, separated by commas "
        "(`10.0.0.7,fd00::/8`). The server trusts `X-Forwarded-For` only from them.",
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LogSettings:
    """The form, the level and the content of the log, which a process writes to stderr."""

    log_format: Literal["text", "json"] = setting(
        default="text",
        description="The form of log lines: `text`, or `json` with one object a line.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        default="info",
        description="The lowest level that slotlock logs: `debug`, `info`, `warning` or `error`.",
    )
    access_log: bool = setting(
        default=False,
        description="Whether the server logs each HTTP request and each operation on a socket. "
        "A line has the method, path, status, operation name, duration, request id and user id. "
        "It has no query text, variables, tokens or addresses.",
    )
