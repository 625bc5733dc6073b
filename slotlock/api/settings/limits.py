"""The settings of limits; `settings.Settings` inherits them."""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode

from slotlock.api.settings.proxies import validate_network


class LimitSettings(BaseSettings):
    """Rate limits, load limits and timeouts, and the proxies that name client addresses."""

    rate_limits: bool = Field(
        default=True,
        description="Whether rates are limited. "
        "Use `off` for benchmarks, simulations and closed networks. "
        "Guessing passwords stays limited in any case.",
    )
    rate_reads: int = Field(
        default=1200,
        ge=15,
        description="The number of root fields of queries that a user may send in a minute.",
    )
    rate_writes: int = Field(
        default=600,
        ge=15,
        description="The number of root fields of mutations that a user may send in a minute.",
    )
    rate_users_per_address: int = Field(
        default=300,
        ge=1,
        description="The rates of an address, as a multiple of those of a user. "
        "As many busy users can share an address.",
    )
    max_requests: int = Field(
        default=10_000,
        ge=1,
        description="The number of requests that a process handles at once. "
        "Requests that wait (`waitMs`) count, event streams do not. "
        "The server rejects further requests with 503 at once.",
    )
    max_sockets: int = Field(
        default=20_000,
        ge=2,
        description="The number of WebSockets and event streams that may be open in a process. "
        "The server rejects further ones with 503.",
    )
    streams_per_user: int = Field(
        default=20,
        ge=1,
        description="The number of WebSockets and event streams that a user may have open in a "
        "process.",
    )
    streams_per_address: int = Field(
        default=5_000,
        ge=1,
        description="The number of WebSockets and event streams that an address may have open in "
        "a process. "
        "It is less than `SLOTLOCK_MAX_SOCKETS`, so that one address leaves room for others.",
    )
    max_body: int = Field(
        default=64 * 1024,
        ge=1024,
        le=10_000_000,
        description="The largest body of a request to `/graphql`, and the largest message of a "
        "WebSocket, in bytes.",
    )
    header_timeout_s: float = Field(
        default=10,
        gt=0,
        description="The seconds within which the header of a request must arrive. "
        "They count from its first byte, or from the start of the connection. "
        "The server responds 408 to a slower client.",
    )
    body_timeout_s: float = Field(
        default=30,
        gt=0,
        description="The seconds within which the body of a request must arrive. "
        "Each 16 kB that have arrived add a second. "
        "The server responds 408 to a slower client.",
    )
    unread_timeout_s: float = Field(
        default=30,
        gt=0,
        description="The seconds within which a client must read 16 kB of a response. "
        "The server closes the connection of a slower client.",
    )
    max_unread: int = Field(
        default=256 * 1024 * 1024,
        ge=8 * 1024 * 1024,
        description="The bytes of responses that the clients of a process may leave unread. "
        "A single address may leave a quarter of them. "
        "Beyond that, the server closes the connection with the most unread bytes.",
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Addresses or networks of the reverse proxies, separated by commas "
        "(`10.0.0.7,fd00::/8`). The server trusts `X-Forwarded-For` only from them.",
    )

    @field_validator("streams_per_address")
    @classmethod
    def _validate_streams_per_address(cls, streams: int, info: ValidationInfo) -> int:
        # `data` lacks an invalid maximum, which is reported by itself.
        max_sockets = info.data.get("max_sockets")
        if max_sockets is not None and streams >= max_sockets:
            raise ValueError(
                f"{streams} is not less than SLOTLOCK_MAX_SOCKETS, which is {max_sockets}"
            )
        return streams

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _split_networks(cls, value: Any) -> Any:
        return split_commas(value)

    @field_validator("trusted_proxies")
    @classmethod
    def _validate_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for problem in filter(None, map(validate_network, networks)):
            raise ValueError(problem)
        return networks


def split_commas(value: Any) -> Any:
    """Split a text at its commas; return another value unchanged."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value
