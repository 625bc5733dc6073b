"""The socket on which a server listens."""

import errno
import os
import socket
from dataclasses import replace

from slotlock.api.settings.settings import Settings

# The first file that systemd passes on (sd_listen_fds(3)).
PASSED_FILE = 3


class ListenError(Exception):
    """The server cannot listen on its address; the text says why and what to do."""


def base_url(settings: Settings) -> str:
    """Return the address of the server as a URL."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def listen(settings: Settings) -> tuple[socket.socket, str]:
    """Return the socket of a server, and its address: that of a socket unit of systemd, if any.

    systemd keeps it open while the server restarts: clients wait in its queue, and get no 502.

    Raises:
        ListenError: the address is in use or not available.
    """
    if os.environ.pop("LISTEN_PID", "") != str(os.getpid()):
        return bind(settings.host, settings.port), base_url(settings)
    passed = socket.socket(fileno=PASSED_FILE)
    if os.environ.pop("LISTEN_FDS", "") != "1" or passed.family is socket.AF_UNIX:
        raise ListenError("the socket unit needs one ListenStream, which is an address and a port")
    passed.set_inheritable(False)
    host, port = passed.getsockname()[:2]
    return passed, base_url(replace(settings, host=host, port=port))


def bind(host: str, port: int, port_variable: str = "PORT") -> socket.socket:
    """Return a socket that listens on this address; the variable is the one to advise to change.

    Raises:
        ListenError: the address is in use or not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(2048)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            advice = f"stop the process that uses it, or set {port_variable} to another port"
        else:
            advice = f"set SLOTLOCK_HOST or {port_variable}"
        address = f"{host}:{port}"
        raise ListenError(f"cannot listen on {address} ({error.strerror}); {advice}") from None
    return bound
