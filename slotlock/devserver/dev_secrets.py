"""The secrets that `dev` keeps in its data directory: it signs with them, its admin signs in."""

import json
import os
import secrets
from pathlib import Path

from slotlock.api.settings.settings import SettingsError

DEFAULT_ADMIN_EMAIL = "admin@slotlock.localhost"


def secrets_path(data_dir: Path) -> Path:
    """Where the secrets of a data directory are, if there are any."""
    return data_dir / "secrets.json"


def dev_secrets(data_dir: Path) -> dict[str, str]:
    """Secrets of this data directory, made once and readable by its owner only."""
    path = secrets_path(data_dir)
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        made = {
            "secret_key": secrets.token_urlsafe(48),
            "admin_password": secrets.token_urlsafe(12),
        }
        draft = path.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(made))
        os.replace(draft, path)
    return read_secrets(data_dir)


def read_secrets(data_dir: Path) -> dict[str, str]:
    """Secrets that were made before: `secret_key`, `admin_password`. Errors: SettingsError."""
    path = secrets_path(data_dir)
    try:
        kept: dict[str, str] = json.loads(path.read_text())
        return {name: kept[name] for name in ("secret_key", "admin_password")}
    except (OSError, ValueError, KeyError, TypeError):
        raise SettingsError(f"{path} cannot be read; restore it or delete it") from None
