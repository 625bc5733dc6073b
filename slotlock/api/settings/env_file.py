"""The file of settings that the units of systemd read, for the commands of an operator."""

import shlex
from pathlib import Path

from slotlock.api.settings.settings import SettingsError


def read_env_file(file: Path) -> dict[str, str]:
    """Return the variables of a file, each in a line `NAME=VALUE` with the quotes of a shell.

    Raises:
        SettingsError: the file cannot be read, or systemd and a shell may read a line differently.
    """
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--env-file {file}: {getattr(error, 'strerror', error)}") from None
    variables = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        try:
            (assignment,) = shlex.split(line)
            name, separator, value = assignment.partition("=")
        except ValueError:
            separator = ""
        if not separator:  # the line may contain a password
            raise SettingsError(
                f'--env-file {file}: line {number} is not NAME=VALUE; write NAME="VALUE" if the '
                "value has blanks"
            )
        variables[name] = value
    return variables
