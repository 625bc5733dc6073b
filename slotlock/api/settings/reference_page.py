"""The reference page of all settings, as `slotlock settings` prints it."""

import re
from dataclasses import fields

from slotlock.api.settings.limits import LimitSettings
from slotlock.api.settings.settings import DECLARATIONS, env_name


def settings_page() -> str:
    """Return the reference page of all settings as Markdown, one sentence a line."""
    lines = [
        "# Settings",
        "",
        "slotlock reads its settings from environment variables.",
        "A misspelled name is an error, which names the nearest setting.",
    ]
    limits = {each.name for each in fields(LimitSettings)}
    for name, declared in sorted(DECLARATIONS.items(), key=lambda item: item[0] in limits):
        default = "none" if declared.default in (None, ()) else f"`{declared.default}`"
        lines += ["", f"## `{env_name(name)}`", "", f"Default: {default}.", ""]
        lines += re.split(r"(?<=\.) ", declared.metadata["description"])
    return "\n".join(lines) + "\n"
