"""All settings. Only this module reads the environment, once."""

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from slotlock.api.settings.addresses import (
    validate_mongo_url,
    validate_origins,
    validate_public_url,
)
from slotlock.api.settings.limits import LimitSettings, split_commas
from slotlock.api.settings.logs import LogSettings
from slotlock.api.settings.unknown_variables import unknown_variable_problems
from slotlock.auth.password_policy.rules import repeats_itself, validate_password
from slotlock.auth.tokens import MIN_SECRET_BYTES
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.domain.users.user import Registration
from slotlock.infrastructure.redis.client import (
    DEFAULT_BUDGET_MS,
    MAX_BUDGET_MS,
    parse_address,
)
from slotlock.infrastructure.redis.keys import MAX_QUEUE_LENGTH, PARTITIONS

PREFIX = "SLOTLOCK_"
ADMIN_NAME = "Administrator"
# A random key has more. One with fewer, such as a repeated letter, can be guessed from any token.
MIN_KEY_CHARACTERS = 8


class SettingsError(Exception):
    """A setting is missing or invalid; each line names a variable and the reason."""


class Settings(LogSettings, LimitSettings):
    """The settings of a process. An empty variable counts as not set."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True
    )

    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(
        default=8000,
        ge=1,
        le=65535,
        validation_alias=AliasChoices("SLOTLOCK_PORT", "PORT"),
        description="The port to listen on. `PORT` also works.",
    )
    public_url: str | None = Field(
        default=None,
        description="The address at which clients reach the server: "
        "`https://example.org`, or `https://example.org/slotlock` behind a path prefix. "
        "The addresses that the API returns, such as those of calendar feeds and export links, "
        "begin with it. "
        "By default they are paths such as `/calendars/...`.",
    )
    mongo_url: str | None = Field(
        default=None,
        description="The address of a MongoDB replica set: "
        "`mongodb://host/slotlock?replicaSet=rs0`. "
        "The path names the database. "
        "A sharded cluster needs no `replicaSet`. "
        "A `readPreference` other than `primary` is rejected: decisions need current data. "
        "So are `journal=false` and `wTimeoutMS`: a confirmed booking must survive. "
        "`w`, `readConcernLevel` and `retryWrites` have no effect: slotlock uses majorities. "
        "`serve` needs this setting; `dev` starts its own server without it.",
    )
    redis_url: str | None = Field(
        default=None,
        description="The address of Redis 7+ or Valkey 8+. "
        "One server: `redis://:password@host:6379/0`, or `unix://`. "
        "Behind Sentinels: `redis+sentinel://:password@host:26379,host:26379/master-name/0`. "
        "A Cluster: `redis+cluster://:password@host:7000,host:7001`. "
        "`rediss` instead of `redis` uses TLS. "
        "`serve` needs this setting; `dev` starts its own server without it.",
    )
    redis_budget_ms: int = Field(
        default=DEFAULT_BUDGET_MS,
        ge=10,
        le=MAX_BUDGET_MS,
        description="The milliseconds that a round trip to Redis may take. "
        "When Redis is slower, bookings continue without it until it is fast again. "
        "Raise it for a distant Redis if you need the admission queue more than fast bookings. "
        f"With `{MAX_BUDGET_MS}` only a Redis that fails is left alone.",
    )
    secret_key: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        default=(),
        description=f"The key that signs tokens: random, at least {MIN_SECRET_BYTES} bytes, "
        f"with at least {MIN_KEY_CHARACTERS} different characters, and no repeated text. "
        "Separate several keys by commas to rotate them: the first one signs, all are accepted. "
        "`serve` needs this setting; `dev` stores a random key in its data directory.",
    )
    refresh_grace_s: int = Field(
        default=30,
        ge=0,
        le=300,
        description="The seconds for which a used refresh token returns the same successor again, "
        "if nobody has used the successor yet. "
        "They begin with the first response that contains the successor. "
        "This is for lost responses and for two tabs. "
        "With 0, every second use of a refresh token ends the session.",
    )
    registration: Registration = Field(
        default=Registration.OPEN,
        description="Who gets an account. "
        "With `open`, everybody can `register`. "
        "With `invited`, `register` is refused, and users set a first password with an invitation "
        "from an organizer. "
        "With `closed`, such an invitation is refused, too: "
        "`slotlock users create` and `slotlock users set-password` give an account its password. "
        "Users who have a password sign in, change it and use reset tokens in any case.",
    )
    public_reads: bool = Field(
        default=True,
        description="Whether anonymous clients may read published slots and their availability.",
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="The origins whose pages may call the API and open sockets, separated by "
        "commas (`https://app.example.org`). "
        "`*` allows every origin.",
    )
    introspection: bool | None = Field(
        default=None,
        description="Whether clients may query the schema (`__schema`, `__type`), and errors "
        "suggest its names. "
        "By default only `dev` allows that.",
    )
    operations: Path | None = Field(
        default=None,
        description="A JSON file with the only GraphQL documents that the server executes: a "
        "persisted query manifest of Apollo, or an object of documents by id. "
        "Clients send such a document, its id or its SHA-256. "
        "By default the server executes every valid document.",
    )
    data_dir: Path = Field(
        default=Path(".slotlock"),
        description="The directory in which `dev` stores its secrets and the data of its servers.",
    )
    admin_email: str | None = Field(
        default=None,
        description="The email address of an admin whom the server creates at start if there is "
        "none. "
        "`simulate` signs in as this admin.",
    )
    admin_password: SecretStr | None = Field(
        default=None,
        description="The password of this admin, 8 to 128 characters. "
        "It must not be common or contain the address of the admin.",
    )
    mongod: str | None = Field(
        default=None,
        description="The `mongod` binary for `dev`. "
        "By default `dev` uses the one on PATH, or else the one of the installed package.",
    )
    valkey: str | None = Field(
        default=None,
        description="The `valkey-server` or `redis-server` binary for `dev`. "
        "By default `dev` uses the one on PATH, or else the one of the installed package.",
    )
    queue_worker: bool = Field(
        default=True,
        description="Whether `serve` processes the admission queue itself. "
        "Use `off` if `slotlock worker` processes do.",
    )
    queue_worker_metrics_port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="The port at which `slotlock worker` serves `/healthz`, `/readyz` and "
        "`/metrics`, on the address of `SLOTLOCK_HOST`. "
        "Without it, such a process does not listen. "
        "`serve` ignores it.",
    )
    queue_partitions: int = Field(
        default=PARTITIONS,
        ge=1,
        le=64,
        description="The number of partitions of the admission queue. "
        "One process at a time serves each partition. "
        "Use the same number everywhere, and change it only while the queue is empty.",
    )
    queue_length: int = Field(
        default=MAX_QUEUE_LENGTH,
        ge=1,
        le=1_000_000,
        description="The number of requests that may wait in one partition of the admission queue. "
        "Each takes about 600 bytes of Redis.",
    )
    max_clock_skew_s: float = Field(
        default=2.0,
        gt=0,
        le=3600,
        description="The seconds by which the clock of the host may differ from MongoDB's before "
        "the log says so. "
        "Decisions use MongoDB's time in any case.",
    )
    graceful_stop_s: int = Field(
        default=30,
        ge=1,
        le=600,
        description="The seconds for which a stop waits until requests in progress have finished.",
    )

    @field_validator("secret_key", "allowed_origins", mode="before")
    @classmethod
    def _split_lists(cls, value: Any) -> Any:
        return split_commas(value)

    @field_validator("allowed_origins")
    @classmethod
    def _validate_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        validate_origins(origins)
        return origins

    @field_validator("public_url")
    @classmethod
    def _validate_public_url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        validate_public_url(url)
        return url.rstrip("/")

    @field_validator("secret_key")
    @classmethod
    def _validate_keys(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(len(key.get_secret_value().encode()) < MIN_SECRET_BYTES for key in keys):
            raise ValueError(
                f"every key needs at least {MIN_SECRET_BYTES} bytes; a comma separates keys"
            )
        texts = [key.get_secret_value() for key in keys]
        if any(len(set(text)) < MIN_KEY_CHARACTERS or repeats_itself(text) for text in texts):
            raise ValueError(
                f"every key needs at least {MIN_KEY_CHARACTERS} different characters, without "
                "repetition; "
                "`openssl rand -base64 48` prints a random one"
            )
        return keys

    @field_validator("mongo_url")
    @classmethod
    def _validate_mongo_url(cls, url: str | None) -> str | None:
        if url is not None:
            validate_mongo_url(url)
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
        # `data` lacks an invalid address, which is reported by itself.
        if password is not None and not info.data.get("admin_email", "wrong"):
            raise ValueError(f"needs {PREFIX}ADMIN_EMAIL, too")
        email = info.data.get("admin_email") or ""
        if password is not None and (
            problem := validate_password(password.get_secret_value(), ADMIN_NAME, email)
        ):
            raise ValueError(problem)
        return password

    @field_validator("admin_email")
    @classmethod
    def _validate_admin_email(cls, email: str | None) -> str | None:
        if email is not None and normalize_email(email) is None:
            raise ValueError("is not an email address")
        return email


def env_name(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def read_settings() -> Settings:
    """Read the settings from the environment.

    Raises:
        SettingsError: at least one setting is invalid, or a variable is misspelled.
    """
    lines = unknown_variable_problems(os.environ, PREFIX, set(map(env_name, Settings.model_fields)))
    try:
        settings = Settings()
    except ValidationError as error:
        for problem in error.errors():
            name = str(problem["loc"][0])
            variable = name if name.isupper() else env_name(name)
            if variable == "SLOTLOCK_PORT" and not os.environ.get(variable):
                variable = "PORT"
            reason = problem["msg"].removeprefix("Value error, ")
            lines.append(f"{variable}: {reason[0].lower()}{reason[1:]}")
        raise SettingsError("\n".join(lines)) from None
    if lines:
        raise SettingsError("\n".join(lines))
    return settings


def require(settings: Settings, *names: str) -> None:
    """Check that settings are set.

    Raises:
        SettingsError: at least one is missing.
    """
    missing = [name for name in names if not getattr(settings, name)]
    if missing:
        descriptions = Settings.model_fields
        raise SettingsError(
            "\n".join(
                f"{env_name(name)} is not set: {descriptions[name].description}" for name in missing
            )
        )
