"""Invalid and misspelled settings are reported, one line each, without secrets."""

import contextlib
import io
import os
from pathlib import Path

import pytest

from slotlock.api.settings.settings import SettingsError, read_settings, require
from slotlock.cli.main import main
from tests.support.cli.command_line import command_errors

KEY = "the current key that is longer than 32 bytes"
OLD_KEY = "the old key that is longer than 32 bytes"


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Return an environment without settings."""
    for name in list(os.environ):
        if name.startswith("SLOTLOCK_") or name == "PORT":
            monkeypatch.delenv(name)
    return monkeypatch


def reported_problems() -> list[str]:
    """Return the lines about the invalid settings in the environment."""
    with pytest.raises(SettingsError) as error:
        read_settings()
    return str(error.value).splitlines()


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("SLOTLOCK_PORT", "eighty", "integer"),
        ("SLOTLOCK_PORT", "0", "greater than or equal to 1"),
        ("SLOTLOCK_PORT", "65536", "less than or equal to 65535"),
        ("PORT", "65536", "less than or equal to 65535"),
        ("SLOTLOCK_LOCALE", "german", "is not a language of the mails, which are en, de, zh"),
        ("SLOTLOCK_LOCALE", "fr", "is not a language of the mails"),
        ("SLOTLOCK_LOCALE", "de_AT", "is not a language of the mails"),
        ("SLOTLOCK_PUBLIC_URL", "example.org", "is not like https://example.org"),
        ("SLOTLOCK_PUBLIC_URL", "ftp://example.org", "is not like https://example.org"),
        ("SLOTLOCK_PUBLIC_URL", "https://ada:secret@example.org", "is not like"),
        ("SLOTLOCK_PUBLIC_URL", "https://example.org/?a=b", "is not like"),
        ("SLOTLOCK_PUBLIC_URL", "https://example.org/#top", "is not like"),
        ("SLOTLOCK_PUBLIC_URL", "https://example.org/a//b", "is not like"),
        ("SLOTLOCK_PUBLIC_URL", "https://example.org:99999", "has no valid port"),
        *(
            ("SLOTLOCK_ALLOWED_ORIGINS", origin, f"'{origin}' is not like https://app.example.org")
            for origin in (
                "app.example.org",
                "https://",
                "https://app.example.org/",
                "https://a.example?x",
                "https://ada@app.example",
                "https://a..example",
                "https://schüler.example",
                "https://a.example:0",
                "https://a.example:65536",
                "https://a.example:",
                "https://*",
                "https://a.*.example",
                "https://*a.example",
                "http://localhost:*",
                "https://*.10.0.0.1",
                "http://127.1",
                "http://[::g]",
                "capacitor://",
                "wss://app.example.org",
                "ftp://app.example.org",
                "file:///android_asset",
            )
        ),
        ("SLOTLOCK_MONGO_URL", "localhost", "mongodb"),
        ("SLOTLOCK_MONGO_URL", "mongodb://", "hostname"),
        ("SLOTLOCK_MONGO_URL", "mongodb://host:99999/", "between 0 and 65535"),
        ("SLOTLOCK_MONGO_URL", "mongodb://host:port/", "non-digit"),
        ("SLOTLOCK_MONGO_URL", "mongodb://user:pass@word@host/", "escaped"),
        ("SLOTLOCK_MONGO_URL", "mongodb://host/a b", "database name"),
        ("SLOTLOCK_MONGO_URL", "mongodb://host/?readPreference=nearest", "readPreference"),
        ("SLOTLOCK_MONGO_URL", "mongodb+srv://h.test/?READPREFERENCE=secondary", "readPreference"),
        ("SLOTLOCK_MONGO_URL", "mongodb://u:p#x@h/?readPreference=nearest", "readPreference"),
        ("SLOTLOCK_MONGO_URL", "mongodb://host/?w=1;journal=false", "journal"),
        ("SLOTLOCK_MONGO_URL", "mongodb://host/?w=1&journal=false", "journal"),
        ("SLOTLOCK_MONGO_URL", "mongodb://host/?wTimeoutMS=10", "wTimeoutMS"),
        ("SLOTLOCK_REDIS_URL", "http://host", "redis"),
        ("SLOTLOCK_REDIS_URL", "redis://host:port", "is not like redis://"),
        ("SLOTLOCK_REDIS_URL", "redis://host:99999", "is not like redis://"),
        ("SLOTLOCK_REDIS_URL", "redis+magic://host", "redis+sentinel or redis+cluster"),
        ("SLOTLOCK_REDIS_URL", "http+cluster://host", "is not like redis+cluster://"),
        ("SLOTLOCK_REDIS_URL", "redis+sentinel://host:1", "is not like redis+sentinel://"),
        ("SLOTLOCK_REDIS_URL", "redis+sentinel://host:port/name", "is not like redis+sentinel://"),
        ("SLOTLOCK_REDIS_URL", "redis+sentinel://host/name/db", "is not like redis+sentinel://"),
        ("SLOTLOCK_REDIS_URL", "redis+sentinel://a,,b/name", "is not like redis+sentinel://"),
        ("SLOTLOCK_REDIS_URL", "redis+cluster://a:1,b:99999", "is not like redis+cluster://"),
        ("SLOTLOCK_REDIS_URL", "redis+cluster://host/1", "is not like redis+cluster://"),
        ("SLOTLOCK_SECRET_KEY", "short", "at least 32 bytes"),
        ("SLOTLOCK_SECRET_KEY", "k" * 31, "at least 32 bytes"),
        ("SLOTLOCK_SECRET_KEY", f"{KEY},short", "at least 32 bytes"),
        ("SLOTLOCK_SECRET_KEY", "s" * 64, "at least 8 different characters"),
        ("SLOTLOCK_SECRET_KEY", f"{KEY},{'changeme' * 8}", "at least 8 different characters"),
        ("SLOTLOCK_SECRET_KEY", "12345678" * 4, "without repetition"),
        ("SLOTLOCK_REGISTRATION", "private", "'open', 'invited' or 'closed'"),
        ("SLOTLOCK_PUBLIC_READS", "maybe", "boolean"),
        ("SLOTLOCK_RATE_READS", "14", "greater than or equal to 15"),
        ("SLOTLOCK_STREAMS_PER_ADDRESS", "20000", "is not less than SLOTLOCK_MAX_SOCKETS"),
        ("SLOTLOCK_MAX_BODY", "1023", "greater than or equal to 1024"),
        ("SLOTLOCK_MAX_BODY", "10000001", "less than or equal to 10000000"),
        ("SLOTLOCK_TRUSTED_PROXIES", "*", "is not like 10.0.0.7"),
        ("SLOTLOCK_TRUSTED_PROXIES", "10.0.0.7,proxy.example.org", "'proxy.example.org' is not"),
        ("SLOTLOCK_TRUSTED_PROXIES", "10.0.0.7/8", "'10.0.0.7/8' is not"),
        ("SLOTLOCK_ADMIN_EMAIL", "nobody", "is not an email address"),
        ("SLOTLOCK_ADMIN_PASSWORD", "longenough", "needs SLOTLOCK_ADMIN_EMAIL"),
        ("SLOTLOCK_GRACEFUL_STOP_S", "0", "greater than or equal to 1"),
    ],
)
def test_an_invalid_value_is_reported_with_its_variable(
    environ: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    environ.setenv(variable, value)
    (line,) = reported_problems()
    assert line.startswith(f"{variable}: ")
    assert reason in line


def test_a_public_address_may_have_a_path_and_a_last_slash(environ: pytest.MonkeyPatch) -> None:
    for value, expected in (
        ("https://example.org/", "https://example.org"),
        ("http://[::1]:8000/slotlock/v1/", "http://[::1]:8000/slotlock/v1"),
    ):
        environ.setenv("SLOTLOCK_PUBLIC_URL", value)
        assert read_settings().public_url == expected


def test_all_invalid_settings_are_reported_together(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("SLOTLOCK_PORT", "x")
    environ.setenv("SLOTLOCK_REDIS_URL", "x")
    environ.setenv("SLOTLOCK_ADMIN_EMAIL", "x")
    environ.setenv("SLOTLOCK_ADMIN_PASSWORD", "longenough")
    variables = [line.partition(":")[0] for line in reported_problems()]
    assert variables == ["SLOTLOCK_PORT", "SLOTLOCK_REDIS_URL", "SLOTLOCK_ADMIN_EMAIL"]


def test_missing_settings_are_reported_one_line_each(environ: pytest.MonkeyPatch) -> None:
    required = ("mongo_url", "redis_url", "secret_key")
    with pytest.raises(SettingsError) as missing:
        require(read_settings(), *required)
    lines = str(missing.value).splitlines()
    assert [line.partition(" is not set: ")[0] for line in lines] == [
        "SLOTLOCK_MONGO_URL",
        "SLOTLOCK_REDIS_URL",
        "SLOTLOCK_SECRET_KEY",
    ]
    environ.setenv("SLOTLOCK_MONGO_URL", "mongodb://host/slotlock?replicaSet=rs0")
    environ.setenv("SLOTLOCK_REDIS_URL", "rediss://:secret@host:6380/1")
    environ.setenv("SLOTLOCK_SECRET_KEY", KEY)
    require(read_settings(), *required)


def test_keys_and_origins_are_separated_by_commas(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("SLOTLOCK_SECRET_KEY", f" {KEY} ,{OLD_KEY},")
    environ.setenv("SLOTLOCK_ALLOWED_ORIGINS", "https://a.example, https://b.example")
    settings = read_settings()
    assert [key.get_secret_value() for key in settings.secret_key] == [KEY, OLD_KEY]
    assert settings.allowed_origins == ("https://a.example", "https://b.example")


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("HTTPS://App.example.org:443", "https://app.example.org"),
        ("http://localhost:080", "http://localhost"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("https://*.example.org:443", "https://*.example.org"),
        ("http://[0:0::1]:5173", "http://[::1]:5173"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("chrome-extension://abcdefgh", "chrome-extension://abcdefgh"),
        ("file://", "file://"),
        ("null", "null"),
    ],
)
def test_an_origin_has_the_form_that_browsers_send(
    environ: pytest.MonkeyPatch, origin: str, expected: str
) -> None:
    environ.setenv("SLOTLOCK_ALLOWED_ORIGINS", origin)
    assert read_settings().allowed_origins == (expected,)


def test_the_length_of_a_key_counts_bytes(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("SLOTLOCK_SECRET_KEY", "\u00e9" * 9 + "abcdefghijklmn")
    assert len(read_settings().secret_key) == 1


def test_slotlock_port_takes_precedence_over_port(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("PORT", "9001")
    assert read_settings().port == 9001
    environ.setenv("SLOTLOCK_PORT", "9002")
    assert read_settings().port == 9002


def test_an_empty_variable_counts_as_not_set(environ: pytest.MonkeyPatch) -> None:
    defaults = read_settings()
    for name in ("PORT", "SLOTLOCK_MONGO_URL", "SLOTLOCK_SECRET_KEY", "SLOTLOCK_PUBLIC_READS"):
        environ.setenv(name, "")
    assert read_settings() == defaults
    assert (defaults.host, defaults.port, defaults.public_reads) == ("127.0.0.1", 8000, True)


def test_no_secret_is_in_a_message_or_a_repr(environ: pytest.MonkeyPatch) -> None:
    environ.setenv("SLOTLOCK_SECRET_KEY", KEY)
    environ.setenv("SLOTLOCK_ADMIN_EMAIL", "admin@slotlock.test")
    environ.setenv("SLOTLOCK_ADMIN_PASSWORD", "very secret")
    assert KEY not in repr(read_settings())
    assert "very secret" not in repr(read_settings())
    environ.setenv("SLOTLOCK_SECRET_KEY", "too short")
    environ.setenv("SLOTLOCK_MONGO_URL", "mongodb://user:hush@hush@host/")
    environ.setenv("SLOTLOCK_REDIS_URL", "redis://:hush#hush@host/")
    lines = reported_problems()
    for mode in ("sentinel", "cluster"):
        environ.setenv("SLOTLOCK_REDIS_URL", f"redis+{mode}://me:hush#hush@host:1,host:2/a/b/c")
        lines += [line for line in reported_problems() if "REDIS" in line]
    assert len(lines) == 5
    assert not any("hush" in line or "too short" in line for line in lines)


def test_the_settings_page_of_the_docs_is_what_the_command_prints() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["settings"]) == 0
    page = Path(__file__).parents[3] / "docs" / "reference" / "settings.md"
    assert page.read_text() == printed.getvalue(), "run `make settings`"


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("SLOTLOCK_RATE_LIMIT", "SLOTLOCK_RATE_LIMITS"),
        ("SLOTLOCK_MONGODB_URL", "SLOTLOCK_MONGO_URL"),
        ("SLOTLOCK_ADMIN_PASWORD", "SLOTLOCK_ADMIN_PASSWORD"),
        ("SLOTLOCK_GRACEFUL_STOP", "SLOTLOCK_GRACEFUL_STOP_S"),
        ("SLOTLOCK_SERVER_PORT", "SLOTLOCK_PORT"),
        ("slotlock_host_", "SLOTLOCK_HOST"),
    ],
)
def test_a_misspelled_setting_is_an_error_that_names_the_nearest_one(
    environ: pytest.MonkeyPatch, variable: str, nearest: str
) -> None:
    environ.setenv(variable, "hush")
    with pytest.raises(SettingsError) as error:
        read_settings()
    assert str(error.value) == f"{variable}: is not a setting; the nearest one is {nearest}"


def test_misspelled_and_invalid_settings_are_reported_together(
    environ: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environ.setenv("SLOTLOCK_PORTS", "80")
    environ.setenv("SLOTLOCK_MAX_BODY", "1")
    lines = command_errors(capsys, "serve")
    assert [line.partition(":")[0] for line in lines] == ["SLOTLOCK_PORTS", "SLOTLOCK_MAX_BODY"]


def test_empty_variables_and_those_of_others_are_no_errors(environ: pytest.MonkeyPatch) -> None:
    defaults = read_settings()
    of_others = {
        "SLOTLOCK_TYPO": "",
        "SLOTLOCK": "yes",
        "MY_SLOTLOCK_PORTS": "80",
        "SLOTLOCK_URL": "http://127.0.0.1:8000/graphql",
        "SLOTLOCK_WEBHOOK_SECRET": "whsec_",
        # Kubernetes: the services `slotlock` and `slotlock-mongo`.
        "SLOTLOCK_SERVICE_HOST": "10.0.0.7",
        "SLOTLOCK_SERVICE_PORT_HTTP": "8000",
        "SLOTLOCK_PORT_8000_TCP_ADDR": "10.0.0.7",
        "SLOTLOCK_MONGO_SERVICE_PORT": "27017",
        "SLOTLOCK_MONGO_PORT": "tcp://10.0.0.8:27017",
    }
    for name, value in of_others.items():
        environ.setenv(name, value)
    assert read_settings() == defaults
