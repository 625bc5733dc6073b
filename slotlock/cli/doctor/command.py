"""`slotlock doctor`: checks this machine and its servers, and prints a line for each check."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncIterator

from slotlock import __version__
from slotlock.api.settings.settings import Settings, SettingsError, env_name, read_settings
from slotlock.api.telemetry.traces import TracingUnavailableError, check_tracing, has_endpoint
from slotlock.cli.commands.table import format_rows
from slotlock.cli.deployment import describe, with_deployment, with_running
from slotlock.cli.doctor.finding import Finding, Level, fail, line_of, ok, warning
from slotlock.devserver.running_deployment import find_running

if sys.platform != "win32":
    import resource

# Connections to MongoDB and Redis, log files and sockets that listen.
OTHER_FILES = 100
TRACES_TIMEOUT_S = 3.0


def run_doctor(args: Namespace) -> int:
    """Run all checks, and return the exit code."""
    return asyncio.run(_examine(args))


async def _examine(args: Namespace) -> int:
    """Print a line for each check, or JSON, and return 1 if any failed, else 0."""
    source = f"of {args.env_file}, and then " if args.env_file else ""
    findings = [ok("slotlock", f"{__version__}, with the settings {source}of the environment")]
    if not args.json:
        print(line_of("LEVEL", "CHECK", "FOUND, AND WHAT TO DO"), findings[0], sep="\n", flush=True)
    async for finding in _find_all():
        findings.append(finding)
        if not args.json:
            print(finding, flush=True)
    if args.json:
        rows = [(each.level, each.check, each.found, each.advice) for each in findings]
        print(format_rows(("level", "check", "found", "advice"), rows, as_json=True))
    return 1 if any(each.level is Level.FAIL for each in findings) else 0


async def _find_all() -> AsyncIterator[Finding]:
    try:
        settings = read_settings()
    except SettingsError as error:
        for line in str(error).splitlines():
            yield fail("settings", line, "correct it, then run `slotlock doctor` again")
        return
    running = None if settings.mongo_url or settings.redis_url else find_running(settings.data_dir)
    if running is not None:
        yield ok("deployment", describe(settings, running))
        settings = with_running(settings, running)
    for finding in check_settings(settings, is_development=running is not None):
        yield finding
    yield await check_traces()
    yield check_file_limit(settings)
    try:
        with_deployment(settings, "mongo_url", "redis_url")
    except SettingsError as error:
        for line in str(error).splitlines():
            yield fail("settings", line, "docs/reference/settings.md has examples")
    async for finding in _check_servers(settings):
        yield finding


async def _check_servers(settings: Settings) -> AsyncIterator[Finding]:
    # Without an address, doctor needs no client of that server.
    if settings.mongo_url:
        from slotlock.cli.doctor.mongodb_checks import check_mongodb

        async for finding in check_mongodb(settings):
            yield finding
    if settings.redis_url:
        from slotlock.cli.doctor.redis_checks import check_redis

        async for finding in check_redis(settings):
            yield finding
    if settings.providers:
        from slotlock.cli.doctor.sign_on_checks import check_sign_on

        async for finding in check_sign_on(settings):
            yield finding
    if settings.smtp_url:
        from slotlock.cli.doctor.mail_checks import check_mail

        async for finding in check_mail(settings):
            yield finding


def check_settings(settings: Settings, *, is_development: bool) -> list[Finding]:
    """Check the settings that `slotlock serve` needs or that only suit tests."""
    findings = []
    if not settings.secret_key and not is_development:
        advice = f"set {env_name('secret_key')}, for example to `openssl rand -base64 48`"
        findings.append(fail("settings", "`serve` has no key that signs tokens", advice))
    if settings.admin_email and settings.admin_password is None and not is_development:
        advice = f"set {env_name('admin_password')} or remove {env_name('admin_email')}"
        findings.append(fail("settings", "the admin has no password", advice))
    if not settings.rate_limits:
        advice = f"remove {env_name('rate_limits')}, which is for tests and closed networks"
        findings.append(warning("settings", "rates are not limited", advice))
    return findings or [ok("settings", "valid")]


async def check_traces() -> Finding:
    """Check that traces can be sent, and arrive, if a variable of OpenTelemetry asks for them."""
    try:
        check_tracing()
    except TracingUnavailableError as error:
        return fail("traces", str(error), "or unset the variable")
    if not has_endpoint():
        return ok("traces", "off")
    from slotlock.infrastructure.telemetry.opentelemetry_spans import send_no_spans

    if reason := await asyncio.to_thread(send_no_spans, TRACES_TIMEOUT_S):
        advice = "start the receiver, or correct OTEL_EXPORTER_OTLP_ENDPOINT"
        return warning("traces", f"the endpoint took no traces: {reason}", advice)
    return ok("traces", "on, and the endpoint takes them")


def check_file_limit(settings: Settings) -> Finding:
    """Compare the limit on open files with the connections that a process accepts."""
    if sys.platform == "win32":
        return ok("open files", "no limit on this platform")
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    needed = settings.max_sockets + settings.max_requests + OTHER_FILES
    if limit == resource.RLIM_INFINITY:
        return ok("open files", "no limit")
    if limit >= needed:
        return ok("open files", f"{limit}, of which a process needs up to {needed}")
    return warning(
        "open files",
        f"{limit}, but a process may need {needed} for its sockets and requests",
        f"run `ulimit -n {needed}` (LimitNOFILE={needed} for systemd), "
        f"or lower {env_name('max_sockets')} and {env_name('max_requests')}",
    )
