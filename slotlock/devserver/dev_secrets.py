"""The secrets of `slotlock dev`: the key that signs tokens, and the password of its admin."""

import json
import os
import secrets
from pathlib import Path

from slotlock.api.settings.settings import SettingsError

DEFAULT_ADMIN_EMAIL = "admin@slotlock.localhost"


def secrets_path(data_dir: Path) -> Path:
    """Return the path of the secrets file, which may not exist."""
    return data_dir / "secrets.json"


def dev_secrets(data_dir: Path) -> dict[str, str]:
    """Return the secrets of a data directory; create the file, readable by its owner only."""
    path = secrets_path(data_dir)
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        created = {
            "secret_key": secrets.token_urlsafe(48),
            "admin_password": secrets.token_urlsafe(12),
        }
        draft = path.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(created))
        os.replace(draft, path)
    return read_secrets(data_dir)


def read_secrets(data_dir: Path) -> dict[str, str]:
    """Return the existing `secret_key` and `admin_password`; raises SettingsError."""
    path = secrets_path(data_dir)
    try:
        stored: dict[str, str] = json.loads(path.read_text())
        return {name: stored[name] for name in ("secret_key", "admin_password")}
    except (OSError, ValueError, KeyError, TypeError):
        raise SettingsError(f"{path} cannot be read; restore it or delete it") from None
