"""`slotlock simulate`: finds the server and the organizer in the settings."""

from argparse import Namespace

from slotlock.api.listener import base_url
from slotlock.api.settings.settings import Settings, SettingsError, read_settings
from slotlock.devserver.dev_secrets import DEFAULT_ADMIN_EMAIL, read_secrets, secrets_path
from slotlock.devserver.running_deployment import find_running
from slotlock.simulation.command import DRAW_MODE, run_simulate_command
from slotlock.simulation.model.plan import Organizer, SimulationError, SimulationTarget


def simulate(args: Namespace) -> int:
    """Run the simulation, and return its exit code."""
    if args.mode == DRAW_MODE:
        from slotlock.cli.draws.compare import compare_on_wishes

        return compare_on_wishes(args)
    return run_simulate_command(args, find_target)


def find_target() -> SimulationTarget:
    """Return the configured server and its admin; raises SimulationError."""
    try:
        settings = read_settings()
        return SimulationTarget(_find_address(settings), _find_organizer(settings))
    except SettingsError as error:
        raise SimulationError(str(error)) from None


def _find_address(settings: Settings) -> str:
    """Return the address of the settings, or else that of a running `slotlock dev`."""
    is_set = settings.given & {"host", "port"}
    running = None if is_set else find_running(settings.data_dir)
    return base_url(settings) if running is None else running.address


def _find_organizer(settings: Settings) -> Organizer:
    """Return the admin of the settings, or else that of `slotlock dev`; raises SettingsError."""
    email, password = settings.admin_email or DEFAULT_ADMIN_EMAIL, settings.admin_password
    if password is not None:
        return Organizer(email, password.get_secret_value(), "SLOTLOCK_ADMIN_PASSWORD")
    path = secrets_path(settings.data_dir)
    if not path.exists():
        raise SettingsError(
            "no organizer: set SLOTLOCK_ADMIN_EMAIL and SLOTLOCK_ADMIN_PASSWORD; "
            f"{path}, the file of `slotlock dev`, does not exist either"
        )
    return Organizer(email, read_secrets(settings.data_dir)["admin_password"], str(path))
