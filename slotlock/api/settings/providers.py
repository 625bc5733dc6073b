"""The file with the providers of sign-ins, which `SLOTLOCK_PROVIDERS` names.

[[provider]]
id = "school"
name = "Example School"
issuer = "https://login.example.org/realms/school"
client_id = "slotlock"
client_secret_file = "/run/secrets/school"
groups_claim = "groups"
groups = { "class-5a" = "5a" }
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from slotlock.auth.providers.provider import Provider
from slotlock.domain.users.groups import clean_groups, validate_groups
from slotlock.domain.users.user import Role
from slotlock.infrastructure.provider_client import is_safe_url

MAX_PROVIDERS = 20
Text = Annotated[str, Field(min_length=1, max_length=500)]
# None of them shares its key with the verifier (RFC 8725, 3.1).
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
# A page with TLS, one of this host, or the private scheme of an app (RFC 8252, 7.1).
REDIRECT = "is not like https://example.org/page, http://127.0.0.1/page or org.example.app:/page"


class ProviderTable(BaseModel):
    """One provider of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,39}$")]
    name: Annotated[str, Field(min_length=1, max_length=100)]
    issuer: Text
    client_id: Text
    client_secret: SecretStr | None = None
    client_secret_file: Path | None = None
    scopes: tuple[Text, ...] = ("openid", "profile", "email")
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = ("RS256",)
    trusted_email: bool = False
    create_accounts: bool = True
    redirect_uris: tuple[str, ...] = ()
    groups_claim: Text = "groups"
    groups: dict[str, str] = {}
    roles: dict[str, Literal["organizer", "admin"]] = {}

    @field_validator("issuer")
    @classmethod
    def _validate_issuer(cls, issuer: str) -> str:
        if not is_safe_url(issuer) or "?" in issuer:
            raise ValueError("is not like https://login.example.org/realms/school")
        return issuer

    @field_validator("scopes")
    @classmethod
    def _validate_scopes(cls, scopes: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in scopes or any(" " in scope for scope in scopes):
            raise ValueError('needs "openid", and each scope as a text of its own')
        return scopes

    @field_validator("redirect_uris")
    @classmethod
    def _validate_redirects(cls, uris: tuple[str, ...]) -> tuple[str, ...]:
        for uri in uris:
            scheme, separator, rest = uri.partition(":")
            # The name of a scheme that belongs to an app has a dot.
            is_app = separator and "." in scheme and scheme.replace(".", "").isalnum() and rest
            if not (is_safe_url(uri) or (is_app and "#" not in uri and uri.isascii())):
                raise ValueError(f"{uri!r} {REDIRECT}")
        return uris

    @field_validator("groups")
    @classmethod
    def _validate_groups(cls, groups: dict[str, str]) -> dict[str, str]:
        for value, group in groups.items():
            if problem := validate_groups((group,)):
                raise ValueError(f"{value!r}: {problem}")
        return {value: "".join(clean_groups([group])) for value, group in groups.items()}

    @model_validator(mode="after")
    def _validate_secrets(self) -> "ProviderTable":
        if self.client_secret is not None and self.client_secret_file is not None:
            raise ValueError("has client_secret and client_secret_file")
        return self

    def to_provider(self) -> Provider:
        """Return the provider. Raises OSError if the secret cannot be read."""
        secret = self.client_secret.get_secret_value() if self.client_secret else None
        if self.client_secret_file is not None:
            secret = self.client_secret_file.read_text().strip()
        values: dict[str, Any] = self.model_dump(exclude={"client_secret_file"})
        roles = {value: Role(role) for value, role in self.roles.items()}
        return Provider(**values | {"client_secret": secret or None, "roles": roles})


def read_providers(file: Path) -> tuple[Provider, ...]:
    """Return the providers of a file.

    Raises:
        ValueError: the file cannot be used; the text names the provider and the field.
    """
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {file}: {error}") from None
    tables = content.pop("provider", None)
    if content or not isinstance(tables, list) or not 0 < len(tables) <= MAX_PROVIDERS:
        raise ValueError(f"{file} has 1 to {MAX_PROVIDERS} tables [[provider]], and nothing else")
    providers = [_to_provider(number, table) for number, table in enumerate(tables, 1)]
    for name in ("id", "issuer"):
        if len({getattr(each, name) for each in providers}) < len(providers):
            raise ValueError(f"two providers have the same {name}")
    return tuple(providers)


def _to_provider(number: int, table: object) -> Provider:
    name = table.get("id", number) if isinstance(table, dict) else number
    try:
        return ProviderTable.model_validate(table).to_provider()
    except ValidationError as error:
        problems = "; ".join(
            ": ".join(filter(None, (".".join(map(str, each["loc"])), _reason(each["msg"]))))
            for each in error.errors(include_url=False, include_input=False)
        )
        raise ValueError(f"provider {name}: {problems}") from None
    except OSError as error:
        raise ValueError(f"provider {name}: client_secret_file: {error}") from None


def _reason(message: str) -> str:
    text = message.removeprefix("Value error, ")
    return text[0].lower() + text[1:]
