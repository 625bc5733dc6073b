"""`slotlock dev`: the app and its servers on one machine."""

import asyncio
from argparse import Namespace
from dataclasses import replace
from email.utils import formataddr

from slotlock.api.app import build_app
from slotlock.api.app_state import read_files
from slotlock.api.first_admin import check_admin_password
from slotlock.api.listener import base_url, bind
from slotlock.api.server.serve import serve, uvicorn_config
from slotlock.api.settings.fields import SecretStr
from slotlock.api.settings.settings import Settings, read_settings
from slotlock.devserver.dev_secrets import DEFAULT_ADMIN_EMAIL, dev_secrets
from slotlock.devserver.embedded import embedded_servers
from slotlock.devserver.mail_catcher import MailCatcher, catching_mail, mail_routes
from slotlock.devserver.running_deployment import RunningDeployment, record_running
from slotlock.devserver.server_watch import ServerWatch


def run_dev(args: Namespace) -> int:
    """Run the servers and the app until a stop signal, and return the exit code.

    It is 1 if the app did not start, or stopped because an embedded server ended twice.

    Raises:
        SettingsError: A setting, the list of documents or the password of a new admin is invalid.
        ServerStartError: An embedded server cannot run here.
        ListenError: The port cannot be used.
    """
    settings = read_settings()
    read_files(settings, development=True)
    catcher = MailCatcher()
    with (
        bind(settings.host, settings.port) as bound,
        embedded_servers(
            settings.data_dir,
            mongo_url=settings.mongo_url,
            redis_url=settings.redis_url,
            mongod=settings.mongod,
            valkey=settings.valkey,
        ) as servers,
        catching_mail(catcher) as mail_port,
    ):
        secrets = dev_secrets(settings.data_dir)
        email = settings.admin_email or DEFAULT_ADMIN_EMAIL
        configured_password = settings.admin_password
        if configured_password is not None:
            password = configured_password.get_secret_value()
            shown = "(from SLOTLOCK_ADMIN_PASSWORD)"
        else:
            password = shown = secrets["admin_password"]
        complete = replace(
            settings,
            mongo_url=servers.mongo_url,
            redis_url=servers.redis_url,
            secret_key=settings.secret_key or (SecretStr(secrets["secret_key"]),),
            admin_email=email,
            admin_password=SecretStr(password),
            webhook_private_addresses=True,
        )
        asyncio.run(check_admin_password(complete))
        routes = []
        if settings.smtp_url is None:
            complete = _with_caught_mail(complete, mail_port)
            routes = mail_routes(catcher)
        app = build_app(complete, development=True, more_routes=routes)
        watch = ServerWatch(servers.processes)

        def on_started() -> None:
            watch.start()
            _print_banner(complete, email, shown)

        running = RunningDeployment(base_url(complete), servers.mongo_url, servers.redis_url)
        with record_running(settings.data_dir, running):
            started = serve(uvicorn_config(complete, app), bound, on_started)
    return 0 if started and not watch.has_given_up else 1


def _with_caught_mail(settings: Settings, port: int) -> Settings:
    """Return the settings with which mails go to the catcher."""
    return replace(
        settings,
        smtp_url=SecretStr(f"smtp://127.0.0.1:{port}"),
        mail_from=settings.mail_from or formataddr((settings.site_name, "noreply@localhost")),
    )


def _print_banner(settings: Settings, email: str, password: str) -> None:
    address = base_url(settings)
    print(
        f"\nslotlock is running: {address}{'/board' if settings.board else '/'}\n"
        f"  examples and links    {address}/developers\n"
        f"  GraphQL and GraphiQL  {address}/graphql\n"
        f"  mails                 {address}/mail\n"
        f"  admin sign-in         {email}  {password}\n"
        f"  data                  {settings.data_dir}\n"
        f"  MongoDB               {settings.mongo_url}\n"
        f"  Redis                 {settings.redis_url}\n"
        "Stop it with Ctrl-C.\n",
        flush=True,
    )
