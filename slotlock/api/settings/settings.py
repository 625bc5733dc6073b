"""Every setting in one typed place; the environment is read here, once, and nowhere else."""

import os
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict
from pymongo.errors import PyMongoError
from pymongo.uri_parser import parse_uri

from slotlock.api.settings.limits import LimitSettings, split_commas
from slotlock.auth.accounts import normalize_email, validate_password
from slotlock.auth.tokens import MIN_SECRET_BYTES
from slotlock.infrastructure.redis.admission.queue import MAX_QUEUE_LENGTH, PARTITIONS
from slotlock.infrastructure.redis.client import parse_address

PREFIX = "SLOTLOCK_"


class SettingsError(Exception):
    """A setting is missing or wrong; the text names the variable and the reason, a line each."""


class Settings(LimitSettings):
    """What can be set. An empty variable counts as one that is not set."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True
    )

    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(
        default=8000,
        ge=1,
        le=65535,
        validation_alias=AliasChoices("SLOTLOCK_PORT", "PORT"),
        description="The port to listen on. `PORT` alone works too.",
    )
    mongo_url: str | None = Field(
        default=None,
        description="MongoDB, a replica set (`mongodb://host/slotlock?replicaSet=rs0`); the path "
        "names the database. `serve` needs it; `dev` starts its own server without it.",
    )
    redis_url: str | None = Field(
        default=None,
        description="Redis 7+ or Valkey 8+. "
        "One server: `redis://:password@host:6379/0`, or `unix://`. "
        "Behind Sentinels: `redis+sentinel://:password@host:26379,host:26379/master-name/0`. "
        "A Cluster: `redis+cluster://:password@host:7000,host:7001`. "
        "`rediss` instead of `redis` uses TLS. "
        "`serve` needs this setting; `dev` starts its own server without it.",
    )
    secret_key: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        default=(),
        description=f"Signs the tokens: at least {MIN_SECRET_BYTES} bytes. Several, separated by "
        "commas, rotate: the first signs, all are accepted. `serve` needs it; `dev` keeps a "
        "random one in its data directory.",
    )
    public_reads: bool = Field(
        default=True,
        description="Whether published slots and availability are read without identity.",
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins of other sites' pages that may call the API and open sockets, "
        "separated by commas (`https://app.example.org`); `*` allows any.",
    )
    introspection: bool | None = Field(
        default=None,
        description="Whether clients may ask for the schema (`__schema`, `__type`) and errors "
        "suggest its names; not set: in `dev`, and not in `serve`.",
    )
    data_dir: Path = Field(
        default=Path(".slotlock"),
        description="Where `dev` keeps its servers' data and its secrets.",
    )
    admin_email: str | None = Field(
        default=None,
        description="An admin with this address is created at start if there is none; `simulate` "
        "organises as them.",
    )
    admin_password: SecretStr | None = Field(
        default=None, description="That admin's password, 8 to 128 characters."
    )
    mongod: str | None = Field(
        default=None,
        description="The mongod for `dev`; else the one on PATH, else the one in the wheel.",
    )
    valkey: str | None = Field(
        default=None,
        description="The valkey-server or redis-server for `dev`; else as for mongod.",
    )
    queue_worker: bool = Field(
        default=True,
        description="Whether the app serves the admission queue itself; `off` where "
        "`slotlock worker` does.",
    )
    queue_partitions: int = Field(
        default=PARTITIONS,
        ge=1,
        le=64,
        description="Into how many parts the slots of the admission queue are divided, each served "
        "by one process at a time. The same everywhere; change it while nobody is in line.",
    )
    queue_length: int = Field(
        default=MAX_QUEUE_LENGTH,
        ge=1,
        le=1_000_000,
        description="How many requests may wait in one part of the admission queue, some 600 bytes "
        "of Redis each.",
    )
    graceful_stop_s: int = Field(
        default=30, ge=1, le=600, description="How long a stop waits for requests under way."
    )

    @field_validator("secret_key", "allowed_origins", mode="before")
    @classmethod
    def _split_lists(cls, value: Any) -> Any:
        return split_commas(value)

    @field_validator("allowed_origins")
    @classmethod
    def _validate_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
                raise ValueError(f"{origin!r} is not like https://app.example.org")
        return origins

    @field_validator("secret_key")
    @classmethod
    def _validate_key_length(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(len(key.get_secret_value().encode()) < MIN_SECRET_BYTES for key in keys):
            raise ValueError(
                f"every key needs at least {MIN_SECRET_BYTES} bytes; a comma separates keys"
            )
        return keys

    @field_validator("mongo_url")
    @classmethod
    def _validate_mongo_url(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("mongodb://", "mongodb+srv://")):
            raise ValueError("is not like mongodb://host:27017/slotlock?replicaSet=rs0")
        if url is not None and url.startswith("mongodb://"):  # +srv would ask the network
            try:
                parse_uri(url)
            except PyMongoError as error:
                raise ValueError(str(error)) from None
        return url

    @field_validator("redis_url")
    @classmethod
    def _validate_redis_url(cls, url: str | None) -> str | None:
        if url is not None:
            parse_address(url)
        return url

    @field_validator("admin_password")
    @classmethod
    def _validate_admin_password(cls, password: SecretStr | None, info: Any) -> SecretStr | None:
        # A wrong address is not in `data` and has a line of its own.
        if password is not None and not info.data.get("admin_email", "wrong"):
            raise ValueError(f"is only of use beside {PREFIX}ADMIN_EMAIL")
        if password is not None and (problem := validate_password(password.get_secret_value())):
            raise ValueError(problem)
        return password

    @field_validator("admin_email")
    @classmethod
    def _validate_admin_email(cls, email: str | None) -> str | None:
        if email is not None and normalize_email(email) is None:
            raise ValueError("is not an e-mail address")
        return email


def env_name(name: str) -> str:
    """The variable that sets a field."""
    return PREFIX + name.upper()


def read_settings() -> Settings:
    """The settings in the environment. Errors: SettingsError."""
    try:
        return Settings()
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            name = str(problem["loc"][0])
            shown = name if name.isupper() else env_name(name)
            if shown == "SLOTLOCK_PORT" and not os.environ.get(shown):
                shown = "PORT"
            reason = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{shown}: {reason[0].lower()}{reason[1:]}")
        raise SettingsError("\n".join(lines)) from None


def require(settings: Settings, *names: str) -> None:
    """Check that these are set. Errors: SettingsError."""
    missing = [name for name in names if not getattr(settings, name)]
    if missing:
        descriptions = Settings.model_fields
        raise SettingsError(
            "\n".join(
                f"{env_name(name)} is not set: {descriptions[name].description}" for name in missing
            )
        )


def export_to_environment(variables: dict[str, str]) -> None:
    """Set variables for the processes that serve, which read their own settings when they start."""
    os.environ.update(variables)


def settings_page() -> str:
    """Return the reference page of all settings as Markdown, one sentence a line."""
    lines = ["# Settings", "", "slotlock reads its settings from environment variables."]
    fields = Settings.model_fields.items()
    for name, field in sorted(fields, key=lambda item: item[0] in LimitSettings.model_fields):
        default = "none" if field.default in (None, ()) else f"`{field.default}`"
        lines += ["", f"## `{env_name(name)}`", "", f"Default: {default}.", ""]
        lines += re.split(r"(?<=\.) ", field.description or "")
    return "\n".join(lines) + "\n"
