"""`slotlock dev`: the app and its servers on one machine."""

from pydantic import SecretStr

from slotlock.api.app import build_app
from slotlock.api.app_state import check_trusted_documents
from slotlock.api.listener import base_url, bind
from slotlock.api.server.serve import serve
from slotlock.api.settings.settings import Settings
from slotlock.devserver.dev_secrets import DEFAULT_ADMIN_EMAIL, dev_secrets
from slotlock.devserver.embedded import embedded_servers
from slotlock.devserver.running import RunningDeployment, record_running
from slotlock.devserver.server_watch import ServerWatch


def run_dev(settings: Settings) -> int:
    """Run the servers and the app until a stop signal, and return the exit code.

    It is 1 if the app did not start, or stopped because an embedded server ended twice.

    Raises:
        SettingsError: The list of documents cannot be used.
        ServerStartError: An embedded server cannot run here.
        ListenError: The port cannot be used.
    """
    check_trusted_documents(settings, development=True)
    with (
        bind(settings.host, settings.port) as bound,
        embedded_servers(
            settings.data_dir,
            mongo_url=settings.mongo_url,
            redis_url=settings.redis_url,
            mongod=settings.mongod,
            valkey=settings.valkey,
        ) as servers,
    ):
        secrets = dev_secrets(settings.data_dir)
        email = settings.admin_email or DEFAULT_ADMIN_EMAIL
        configured_password = settings.admin_password
        if configured_password is not None:
            password = configured_password.get_secret_value()
            shown = "(from SLOTLOCK_ADMIN_PASSWORD)"
        else:
            password = shown = secrets["admin_password"]
        complete = settings.model_copy(
            update={
                "mongo_url": servers.mongo_url,
                "redis_url": servers.redis_url,
                "secret_key": settings.secret_key or (SecretStr(secrets["secret_key"]),),
                "admin_email": email,
                "admin_password": SecretStr(password),
            }
        )
        app = build_app(complete, development=True)
        watch = ServerWatch(servers.processes)

        def on_started() -> None:
            watch.start()
            _print_banner(complete, email, shown)

        running = RunningDeployment(base_url(complete), servers.mongo_url, servers.redis_url)
        with record_running(settings.data_dir, running):
            started = serve(complete, bound, app, on_started)
    return 0 if started and not watch.has_given_up else 1


def _print_banner(settings: Settings, email: str, password: str) -> None:
    address = base_url(settings)
    print(
        f"\nslotlock is running: {address}/\n"
        f"  GraphQL and GraphiQL  {address}/graphql\n"
        f"  admin sign-in         {email}  {password}\n"
        f"  data                  {settings.data_dir}\n"
        f"  MongoDB               {settings.mongo_url}\n"
        f"  Redis                 {settings.redis_url}\n"
        "Stop it with Ctrl-C.\n",
        flush=True,
    )
