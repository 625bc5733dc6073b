"""The settings that say how much is served: a part of those in `settings`, which reads them."""

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode

from slotlock.api.settings.proxies import validate_network


class LimitSettings(BaseSettings):
    """Limits, and whom they count."""

    rate_limits: bool = Field(
        default=True,
        description="Whether rates are limited; `off` for benchmarks, simulations and closed "
        "networks. Passwords are guarded all the same.",
    )
    rate_reads: int = Field(
        default=1200,
        ge=15,
        description="How many root fields of queries a person may ask for in a minute.",
    )
    rate_writes: int = Field(
        default=600,
        ge=15,
        description="How many root fields of mutations a person may ask for in a minute.",
    )
    rate_users_per_address: int = Field(
        default=300,
        ge=1,
        description="How many people's rates an address may have: so many busy ones can share it.",
    )
    max_requests: int = Field(
        default=10_000,
        ge=1,
        description="How many requests a process handles at once, including those that wait "
        "(`waitMs`), without event streams. The server rejects further ones with 503 at once.",
    )
    max_sockets: int = Field(
        default=20_000,
        ge=2,
        description="How many WebSockets and event streams may be open in a process; then 503.",
    )
    streams_per_user: int = Field(
        default=20,
        ge=1,
        description="How many WebSockets and event streams a person may have open in a process.",
    )
    streams_per_address: int = Field(
        default=5_000,
        ge=1,
        description="How many WebSockets and event streams an address may have open in a process: "
        "fewer than `SLOTLOCK_MAX_SOCKETS`, so that one address leaves room for others.",
    )
    max_body: int = Field(
        default=64 * 1024,
        ge=1024,
        le=10_000_000,
        description="How many bytes a request to `/graphql` and a message of a WebSocket may have.",
    )
    header_timeout_s: float = Field(
        default=10,
        gt=0,
        description="How long a request's header may take, from its first byte or from the "
        "beginning of the connection; then 408.",
    )
    body_timeout_s: float = Field(
        default=30,
        gt=0,
        description="How long a request's body may take, with a second more for each 16 kB that "
        "came; then 408.",
    )
    unread_timeout_s: float = Field(
        default=30,
        gt=0,
        description="How long an answer may be left unread, that is less than 16 kB of it be read; "
        "then the connection is cut.",
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Addresses or networks of the reverse proxies, separated by commas "
        "(`10.0.0.7,fd00::/8`). The server trusts `X-Forwarded-For` only from them.",
    )

    @field_validator("streams_per_address")
    @classmethod
    def _validate_streams_per_address(cls, streams: int, info: ValidationInfo) -> int:
        # A wrong maximum is not in `data` and has a line of its own.
        most = info.data.get("max_sockets")
        if most is not None and streams >= most:
            raise ValueError(f"{streams} is not less than SLOTLOCK_MAX_SOCKETS, which is {most}")
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
    """The parts of a text that are separated by commas."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value
