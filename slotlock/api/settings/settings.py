"""All settings. Only this module reads the environment, once."""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from slotlock.api.settings.addresses import (
    normalize_origin,
    validate_mongo_url,
    validate_public_url,
)
from slotlock.api.settings.fields import SecretStr, convert, setting
from slotlock.api.settings.limits import LimitSettings, LogSettings
from slotlock.api.settings.mail import BOARD_FIRST, MailSettings
from slotlock.api.settings.unknown_variables import unknown_variable_problems
from slotlock.auth.password_policy.rules import repeats_itself
from slotlock.auth.tokens import MIN_SECRET_BYTES
from slotlock.domain.site.site import MAX_NAME_LENGTH, validate_color, validate_site_name
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.domain.users.user import Registration
from slotlock.infrastructure.redis.keys import (
    DEFAULT_BUDGET_MS,
    MAX_BUDGET_MS,
    MAX_QUEUE_LENGTH,
    PARTITIONS,
)

PREFIX = "SLOTLOCK_"
ADMIN_NAME = "Administrator"
# A random key has more. One with fewer, such as a repeated letter, can be guessed from any token.
MIN_KEY_CHARACTERS = 8


class SettingsError(Exception):
    """A setting is missing or invalid; each line names a variable and the reason."""


def _check_public_url(url: str) -> str:
    validate_public_url(url)
    return url.rstrip("/")


def _check_mongo_url(url: str) -> str:
    validate_mongo_url(url)
    return url


def _check_redis_url(url: str) -> str:
    # The client of Redis takes longer to import than all settings.
    from slotlock.infrastructure.redis.client import parse_address

    parse_address(url)
    return url


def _check_keys(keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    texts = [key.get_secret_value() for key in keys]
    if any(len(text.encode()) < MIN_SECRET_BYTES for text in texts):
        raise ValueError(
            f"every key needs at least {MIN_SECRET_BYTES} bytes; a comma separates keys"
        )
    if any(len(set(text)) < MIN_KEY_CHARACTERS or repeats_itself(text) for text in texts):
        raise ValueError(
            f"every key needs at least {MIN_KEY_CHARACTERS} different characters, without "
            "repetition; "
            "`openssl rand -base64 48` prints a random one"
        )
    return keys


def _check_providers(file: Path) -> Path:
    # Most servers have no such file.
    from slotlock.api.settings.providers import read_providers

    read_providers(file)
    return file


def _check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(normalize_origin, origins))


def _check_site_name(name: str) -> str:
    if problem := validate_site_name(name):
        raise ValueError(f"cannot be the name: {problem}")
    return name


def _check_color(color: str) -> str:
    if validate_color(color):
        raise ValueError("is not like #2a3bb7")
    return color


def _check_email(email: str) -> str:
    if normalize_email(email) is None:
        raise ValueError("is not an email address")
    return email


@dataclass(frozen=True, kw_only=True)
class Settings(LogSettings, LimitSettings, MailSettings):
    """The settings of a process. Only `read_settings` checks the values."""

    host: str = setting(
        default="127.0.0.1",
        description="The IPv4 or IPv6 address to listen on; `0.0.0.0` stands for all of IPv4. "
        "A socket unit of systemd, which has its own, comes first for `serve`.",
    )
    port: int = setting(
        default=8000,
        ge=1,
        le=65535,
        description="The port to listen on. `PORT` also works. "
        "A socket unit of systemd, which has its own, comes first for `serve`.",
    )
    public_url: str | None = setting(
        default=None,
        check=_check_public_url,
        description="The address at which clients reach the server: "
        "`https://example.org`, or `https://example.org/slotlock` behind a path prefix. "
        "The addresses that the API returns, such as those of calendar feeds and export links, "
        "begin with it. "
        "By default they are paths such as `/calendars/...`.",
    )
    mongo_url: str | None = setting(
        default=None,
        check=_check_mongo_url,
        description="The address of a MongoDB replica set: "
        "`mongodb://host/slotlock?replicaSet=rs0`. "
        "The path names the database. "
        "A sharded cluster needs no `replicaSet`. "
        "A `readPreference` other than `primary` is rejected: decisions need current data. "
        "So are `journal=false` and `wTimeoutMS`: a confirmed booking must survive. "
        "`w`, `readConcernLevel` and `retryWrites` have no effect: slotlock uses majorities. "
        "`serve` needs this setting; `dev` starts its own server without it.",
    )
    redis_url: str | None = setting(
        default=None,
        check=_check_redis_url,
        description="The address of Redis 7+ or Valkey 8+. "
        "One server: `redis://:password@host:6379/0`, or `unix://`. "
        "Behind Sentinels: `redis+sentinel://:password@host:26379,host:26379/master-name/0`. "
        "A Cluster: `redis+cluster://:password@host:7000,host:7001`. "
        "`rediss` instead of `redis` uses TLS. "
        "`serve` needs this setting; `dev` starts its own server without it.",
    )
    redis_budget_ms: int = setting(
        default=DEFAULT_BUDGET_MS,
        ge=10,
        le=MAX_BUDGET_MS,
        description="The milliseconds that a round trip to Redis may take. "
        "When Redis is slower, bookings continue without it until it is fast again. "
        "Raise it for a distant Redis if you need the admission queue more than fast bookings. "
        f"With `{MAX_BUDGET_MS}` only a Redis that fails is left alone.",
    )
    secret_key: tuple[SecretStr, ...] = setting(
        default=(),
        check=_check_keys,
        description=f"The key that signs tokens: random, at least {MIN_SECRET_BYTES} bytes, "
        f"with at least {MIN_KEY_CHARACTERS} different characters, and no repeated text. "
        "Separate several keys by commas to rotate them: the first one signs, all are accepted. "
        "`serve` needs this setting; `dev` stores a random key in its data directory.",
    )
    refresh_grace_s: int = setting(
        default=30,
        ge=0,
        le=300,
        description="The seconds for which a used refresh token returns the same successor again, "
        "if nobody has used the successor yet. "
        "They begin with the first response that contains the successor. "
        "This is for lost responses and for two tabs. "
        "With 0, every second use of a refresh token ends the session.",
    )
    registration: Registration = setting(
        default=Registration.OPEN,
        description="Who gets an account. "
        "With `open`, everybody can `register`. "
        "With `invited`, `register` is refused, and users set a first password with an invitation "
        "from an organizer. "
        "With `closed`, such an invitation is refused, too: "
        "`slotlock users create` and `slotlock users set-password` give an account its password. "
        "Users who have a password sign in, change it and use reset tokens in any case.",
    )
    providers: Path | None = setting(
        default=None,
        check=_check_providers,
        description="A TOML file with the providers of the school at which users sign in (OpenID "
        "Connect). "
        "The guide on sign-on describes it.",
    )
    password_sign_in: bool = setting(
        default=True,
        description="Whether members sign in with a password, too. "
        "With `off`, they sign in only at a provider, and nobody can `register`. "
        "Organizers and admins always have the password as a way in. "
        "`off` needs `SLOTLOCK_PROVIDERS`.",
    )
    require_verified_email: bool = setting(
        default=False,
        description="Whether users verify their e-mail address before they get places. "
        "A campaign can require this by itself. "
        "Accounts with a user name, which organizers created, need no address. "
        "It needs `SLOTLOCK_SMTP_URL`, or users verify nothing.",
    )
    public_reads: bool = setting(
        default=True,
        description="Whether anonymous clients may read published slots and their availability.",
    )
    public_resource_calendars: bool = setting(
        default=True,
        description="Whether the calendar of a resource is as public as that of all published "
        "slots. Otherwise only organizers read it: with their token, or at the secret address of "
        "their calendar feed.",
    )
    allowed_origins: tuple[str, ...] = setting(
        default=(),
        check=_check_origins,
        description="The origins whose pages may call the API and open sockets, separated by "
        "commas (`https://app.example.org`). "
        "`https://*.example.org` allows all subdomains, but not `https://example.org` itself. "
        "WebViews of apps have origins such as `capacitor://localhost` or `http://localhost`. "
        "`*` allows every origin, and `null` every page that has none, as in a sandboxed frame. "
        "Pages of the server's own origin need no setting.",
    )
    introspection: bool | None = setting(
        default=None,
        description="Whether clients may query the schema (`__schema`, `__type`), and errors "
        "suggest its names. "
        "By default only `dev` allows that.",
    )
    operations: Path | None = setting(
        default=None,
        description="A JSON file with the only GraphQL documents that the server executes: a "
        "persisted query manifest of Apollo, or an object of documents by id. "
        "Clients send such a document, its id or its SHA-256. "
        "The server also executes the documents of the board, unless `SLOTLOCK_BOARD` is off. "
        "By default the server executes every valid document.",
    )
    board: bool = setting(
        default=True,
        description="Whether the server serves the board, its web client, at `/board`.",
    )
    board_errors: bool = setting(
        default=False,
        description="Whether the board sends errors of its own JavaScript to the log, with the id "
        "that it shows to the user.",
    )
    site_name: str = setting(
        default="slotlock",
        check=_check_site_name,
        description="The name that the board and other clients show, such as that of the school; "
        f"at most {MAX_NAME_LENGTH} characters. " + BOARD_FIRST,
    )
    site_color: str | None = setting(
        default=None,
        check=_check_color,
        description="The color of the site, as `#2a3bb7`. " + BOARD_FIRST,
    )
    site_logo_url: str | None = setting(
        default=None,
        description="The address of the logo, on the same host: the board loads nothing else. "
        + BOARD_FIRST,
    )
    imprint_url: str | None = setting(
        default=None,
        description="The address of the imprint, to which the board links. " + BOARD_FIRST,
    )
    privacy_url: str | None = setting(
        default=None,
        description="The address of the privacy notice, to which the board links. " + BOARD_FIRST,
    )
    data_dir: Path = setting(
        default=Path(".slotlock"),
        description="The directory in which `dev` stores its secrets and the data of its servers.",
    )
    admin_email: str | None = setting(
        default=None,
        check=_check_email,
        description="The email address of an admin whom the server creates at start if there is "
        "none. "
        "`simulate` signs in as this admin.",
    )
    admin_password: SecretStr | None = setting(
        default=None,
        description="The password of this admin, 8 to 128 characters. "
        "It must not be common or contain the address of the admin, unless the account exists.",
    )
    mongod: str | None = setting(
        default=None,
        description="The `mongod` binary for `dev`. "
        "By default `dev` uses the one on PATH, or else the one of the installed package.",
    )
    valkey: str | None = setting(
        default=None,
        description="The `valkey-server` or `redis-server` binary for `dev`. "
        "By default `dev` uses the one on PATH, or else the one of the installed package.",
    )
    queue_worker: bool = setting(
        default=True,
        description="Whether `serve` processes the admission queue itself. "
        "Use `off` if `slotlock worker` processes do.",
    )
    webhook_private_addresses: bool = setting(
        default=False,
        description="Whether webhooks may have URLs with `http:`, and addresses of the own "
        "network. "
        "Use it only if you trust all organizers. `dev` allows it.",
    )
    queue_worker_metrics_port: int | None = setting(
        default=None,
        ge=1,
        le=65535,
        description="The port at which `slotlock worker` serves `/healthz`, `/readyz` and "
        "`/metrics`, on the address of `SLOTLOCK_HOST`. "
        "Without it, such a process does not listen. "
        "`serve` ignores it.",
    )
    queue_partitions: int = setting(
        default=PARTITIONS,
        ge=1,
        le=64,
        description="The number of partitions of the admission queue. "
        "One process at a time serves each partition. "
        "Use the same number everywhere, and change it only while the queue is empty.",
    )
    queue_length: int = setting(
        default=MAX_QUEUE_LENGTH,
        ge=1,
        le=1_000_000,
        description="The number of requests that may wait in one partition of the admission queue. "
        "Each takes about 600 bytes of Redis.",
    )
    max_clock_skew_s: float = setting(
        default=2.0,
        gt=0,
        le=3600,
        description="The seconds by which the clock of the host may differ from MongoDB's before "
        "the log says so. "
        "Decisions use MongoDB's time in any case.",
    )
    graceful_stop_s: int = setting(
        default=30,
        ge=1,
        le=600,
        description="The seconds for which a stop waits until requests in progress have finished.",
    )

    # The settings that the environment names.
    given: frozenset[str] = frozenset()


def env_name(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


DECLARATIONS = {each.name: each for each in fields(Settings) if each.metadata}


def read_settings(
    environ: Mapping[str, str] = os.environ, unchecked: Collection[str] = ()
) -> Settings:
    """Read the settings from the environment. An empty variable counts as not set.

    `unchecked` names settings that the command does not use, and whose check would import much.

    Raises:
        SettingsError: at least one setting is invalid, or a variable is misspelled.
    """
    given = {name.upper(): value for name, value in environ.items() if value}
    variables = {name: env_name(name) for name in DECLARATIONS}
    lines = unknown_variable_problems(environ, PREFIX, set(variables.values()))
    if variables["port"] not in given:
        variables["port"] = "PORT"
    texts = {name: given[each] for name, each in variables.items() if each in given}
    values: dict[str, Any] = {name: each.default for name, each in DECLARATIONS.items()}
    problems = []
    for name, text in texts.items():
        try:
            values[name] = convert(text, DECLARATIONS[name], checked=name not in unchecked)
        except ValueError as error:
            del values[name]
            problems.append((name, str(error)))
    for name, reason in (*problems, *_contradictions(values)):
        lines.append(f"{variables[name]}: {reason[0].lower()}{reason[1:]}")
    if lines:
        raise SettingsError("\n".join(lines))
    return Settings(**values, given=frozenset(texts))


def _contradictions(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings that contradict others, with the reasons.

    The values lack those that are invalid by themselves, which are reported already.
    """
    streams, max_sockets = values.get("streams_per_address"), values.get("max_sockets")
    if streams is not None and max_sockets is not None and streams >= max_sockets:
        reason = f"{streams} is not less than SLOTLOCK_MAX_SOCKETS, which is {max_sockets}"
        yield "streams_per_address", reason
    if values.get("smtp_url") is not None and values.get("mail_from", "") is None:
        yield "smtp_url", "needs SLOTLOCK_MAIL_FROM, too"
    if values.get("password_sign_in") is False and values.get("providers", "") is None:
        yield "password_sign_in", "`off` needs SLOTLOCK_PROVIDERS"
    if values.get("admin_password") is not None and values.get("admin_email", "") is None:
        yield "admin_password", f"needs {PREFIX}ADMIN_EMAIL, too"


def require(settings: Settings, *names: str) -> None:
    """Check that settings are set.

    Raises:
        SettingsError: at least one is missing.
    """
    missing = [name for name in names if not getattr(settings, name)]
    if missing:
        raise SettingsError(
            "\n".join(
                f"{env_name(name)} is not set: {DECLARATIONS[name].metadata['description']}"
                for name in missing
            )
        )
