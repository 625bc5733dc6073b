"""A misspelled setting is an error that names the nearest one, and never its value."""

import pytest

from slotlock.api.settings.settings import SettingsError, read_settings
from tests.support.cli.command_line import command_errors, replace_environment


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Return an environment without settings."""
    replace_environment(monkeypatch, {})
    return monkeypatch


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


def test_empty_variables_and_those_of_other_programs_are_no_errors(
    environ: pytest.MonkeyPatch,
) -> None:
    defaults = read_settings()
    of_others = {
        "SLOTLOCK_TYPO": "",
        "SLOTLOCK": "yes",
        "MY_SLOTLOCK_PORTS": "80",
        "SLOTLOCK_URL": "http://127.0.0.1:8000/graphql",
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
