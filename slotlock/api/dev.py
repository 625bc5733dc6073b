"""`slotlock dev`: the whole system on one machine with one command."""

import json
import os
import secrets
from pathlib import Path

from pydantic import SecretStr

from slotlock.api.app import build_app
from slotlock.api.embedded import embedded_servers
from slotlock.api.server import address_of, listen, serve
from slotlock.api.settings import Settings, SettingsError

DEFAULT_ADMIN = "admin@slotlock.localhost"


def run_dev(settings: Settings) -> int:
    """Run servers and app until a signal says stop. Errors: CannotStart, ListenError."""
    with (
        listen(settings) as bound,
        embedded_servers(
            settings.data_dir,
            mongo_url=settings.mongo_url,
            redis_url=settings.redis_url,
            mongod=settings.mongod,
            valkey=settings.valkey,
        ) as servers,
    ):
        secret = _kept_secrets(settings.data_dir)
        email = settings.admin_email or DEFAULT_ADMIN
        given = settings.admin_password
        password = given.get_secret_value() if given else secret["admin_password"]
        whole = settings.model_copy(
            update={
                "mongo_url": servers.mongo_url,
                "redis_url": servers.redis_url,
                "secret_key": settings.secret_key or (SecretStr(secret["secret_key"]),),
                "admin_email": email,
                "admin_password": SecretStr(password),
            }
        )
        app = build_app(whole, development=True)
        shown = "(the password in SLOTLOCK_ADMIN_PASSWORD)" if given else password
        started = serve(whole, bound, app, lambda: _welcome(whole, email, shown))
    return 0 if started else 1


def _welcome(settings: Settings, email: str, password: str) -> None:
    address = address_of(settings)
    print(
        f"\nslotlock is running: {address}\n"
        f"  GraphQL and GraphiQL  {address}/graphql\n"
        f"  organiser's sign-in   {email}  {password}\n"
        f"  data                  {settings.data_dir}\n"
        f"  MongoDB               {settings.mongo_url}\n"
        "Stop it with Ctrl-C.\n",
        flush=True,
    )


def _kept_secrets(data_dir: Path) -> dict[str, str]:
    """Secrets of this data directory, made once and readable by its owner only."""
    path = data_dir / "secrets.json"
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
    try:
        kept: dict[str, str] = json.loads(path.read_text())
        return {name: kept[name] for name in ("secret_key", "admin_password")}
    except (ValueError, KeyError, TypeError):
        raise SettingsError(f"{path} cannot be read; restore it or delete it") from None
