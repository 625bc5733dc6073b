"""The reference page of all settings, as `slotlock settings` prints it."""

import re

from slotlock.api.settings.limits import LimitSettings
from slotlock.api.settings.settings import Settings, env_name


def settings_page() -> str:
    """Return the reference page of all settings as Markdown, one sentence a line."""
    lines = [
        "# Settings",
        "",
        "slotlock reads its settings from environment variables.",
        "A misspelled name is an error, which names the nearest setting.",
    ]
    fields = Settings.model_fields.items()
    for name, field in sorted(fields, key=lambda item: item[0] in LimitSettings.model_fields):
        default = "none" if field.default in (None, ()) else f"`{field.default}`"
        lines += ["", f"## `{env_name(name)}`", "", f"Default: {default}.", ""]
        lines += re.split(r"(?<=\.) ", field.description or "")
    return "\n".join(lines) + "\n"
