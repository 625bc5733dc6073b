"""Checks of this machine: the settings of the process, clocks and limits."""

import sys

from slotlock.api.settings.settings import Settings, env_name
from slotlock.api.telemetry.traces import TracingUnavailableError, check_tracing, has_endpoint
from slotlock.cli.doctor.finding import Finding, fail, ok, warning

if sys.platform != "win32":
    import resource

# Connections to MongoDB and Redis, log files and sockets that listen.
OTHER_FILES = 100


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


def check_traces() -> Finding:
    """Check that traces can be sent, if a variable of OpenTelemetry asks for them."""
    try:
        check_tracing()
    except TracingUnavailableError as error:
        return fail("traces", str(error), "or unset the variable")
    return ok("traces", "on" if has_endpoint() else "off")


def check_clock(check: str, sent_s: float, server_s: float, received_s: float, max_skew_s: float
) -> Finding:  # fmt: skip
    """Compare the clock of a server with that of this machine.

    `server_s` is the server's time, read between `sent_s` and `received_s` by the clock of this
    machine; all are in seconds since 1970. The round trip limits how exactly the skew is known.
    """
    least_skew_s = max(sent_s - server_s, server_s - received_s, 0)
    ahead_s = (sent_s + received_s) / 2 - server_s
    found = f"this machine is {ahead_s:+.3f} s ahead"
    if least_skew_s <= max_skew_s:
        return ok(check, found)
    advice = f"run NTP on both; {env_name('max_clock_skew_s')} allows {max_skew_s:g} s"
    return warning(check, found, advice)


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
