"""The file of providers: a mistake names the provider and the field."""

import re
from pathlib import Path

import pytest

from slotlock.api.backend import sign_in_providers
from slotlock.api.settings.providers import read_providers
from slotlock.api.settings.settings import Settings, SettingsError, read_settings
from slotlock.domain.users.user import Role

VALID = """[[provider]]
id = "school"
name = "Example School"
issuer = "https://login.example.org/realms/school"
client_id = "slotlock"
"""


def write(directory: Path, text: str) -> Path:
    file = directory / "providers.toml"
    file.write_text(text)
    return file


def test_a_provider_has_defaults_and_reads_its_secret(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    more = f'client_secret_file = "{tmp_path}/secret"\nroles = {{ staff = "organizer" }}\n'
    (provider,) = read_providers(write(tmp_path, VALID + more + 'groups = { a = " 5a " }'))
    assert provider.client_secret == "s3cret"
    assert "s3cret" not in repr(provider)
    assert provider.algorithms == ("RS256",)
    assert not provider.trusted_email
    assert (provider.groups, provider.roles) == ({"a": "5a"}, {"staff": Role.ORGANIZER})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1 to 20 tables"),
        ("not toml", "cannot read"),
        (VALID.replace("[[provider]]", "[provider]"), "1 to 20 tables"),
        (VALID + VALID, "the same id"),
        (VALID + VALID.replace('"school"', '"two"'), "the same issuer"),
        (VALID.replace("client_id", "client"), "provider school: client_id"),
        (VALID.replace("https:", "http:"), "provider school: issuer: is not like"),
        (VALID.replace('"school"', '"A b"'), "provider A b: id"),
        (VALID + 'algorithms = ["HS256"]', "provider school: algorithms"),
        (VALID + 'algorithms = ["none"]', "provider school: algorithms"),
        (VALID + "algorithms = []", "provider school: algorithms"),
        (VALID + 'scopes = ["email"]', "provider school: scopes"),
        (VALID + 'redirect_uris = ["javascript:alert(1)"]', "provider school: redirect_uris"),
        (VALID + 'redirect_uris = ["http://example.org/"]', "provider school: redirect_uris"),
        (VALID + 'groups = { a = "x;y" }', "provider school: groups"),
        (VALID + 'roles = { a = "king" }', "provider school: roles.a"),
        (VALID + 'client_secret_file = "/nowhere/secret"', "school: client_secret_file"),
        (VALID + "trusted = true", "provider school: trusted"),
    ],
)
def test_a_mistake_names_the_provider_and_the_field(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_providers(write(tmp_path, text))


def test_a_provider_needs_an_address_of_the_board_or_its_own(tmp_path: Path) -> None:
    file = write(tmp_path, VALID)
    with pytest.raises(SettingsError, match="provider school: redirect_uris"):
        sign_in_providers(Settings(providers=file))
    assert sign_in_providers(Settings(providers=file, public_url="https://example.org"))
    assert sign_in_providers(Settings(providers=file), development=True)


def test_members_need_a_provider_if_they_have_no_password() -> None:
    with pytest.raises(SettingsError, match="SLOTLOCK_PROVIDERS"):
        read_settings({"SLOTLOCK_PASSWORD_SIGN_IN": "off"})
