"""Environment variables that look like settings and are none, such as misspelled ones."""

import difflib
import re
from collections.abc import Collection, Mapping

# The examples of clients and receivers read them, perhaps in the shell that starts the server.
CLIENT_VARIABLES = frozenset({"SLOTLOCK_URL", "SLOTLOCK_WEBHOOK_SECRET"})
# Kubernetes sets such variables for each service, and one may be called `slotlock`.
SERVICE_LINK = re.compile(
    r"SLOTLOCK_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_\w+)?)"
)
SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def unknown_variable_problems(
    environment: Mapping[str, str], prefix: str, settings: Collection[str]
) -> list[str]:
    """Return a line for each variable with the prefix that is none of the settings.

    Each names the nearest setting. None repeats a value, which may be a secret.
    """
    endings = {name.removeprefix(prefix): name for name in settings}
    lines = []
    for name, value in sorted(environment.items()):
        upper_name = name.upper()  # settings are read in any case
        if not value or not upper_name.startswith(prefix) or upper_name in settings:
            continue
        if upper_name in CLIENT_VARIABLES or _is_service_link(upper_name, value):
            continue
        ending = upper_name.removeprefix(prefix)
        (nearest,) = difflib.get_close_matches(ending, endings, n=1, cutoff=0)
        lines.append(f"{name}: is not a setting; the nearest one is {endings[nearest]}")
    return lines


def _is_service_link(name: str, value: str) -> bool:
    return bool(SERVICE_LINK.fullmatch(name) or SERVICE_ADDRESS.match(value))
