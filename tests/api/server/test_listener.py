"""The socket of the app: its own, or that of a socket unit, which stays open over a restart."""

import os
import socket

import pytest

from slotlock.api import listener
from slotlock.api.listener import ListenError, listen
from slotlock.api.settings.settings import Settings


def pass_on(environ: pytest.MonkeyPatch, passed: socket.socket, count: str = "1") -> None:
    """Pass a socket on to this process, as systemd does."""
    environ.setattr(listener, "PASSED_FILE", os.dup(passed.fileno()))
    environ.setenv("LISTEN_PID", str(os.getpid()))
    environ.setenv("LISTEN_FDS", count)


def test_the_app_listens_at_the_socket_of_its_unit_and_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unit:
        pass_on(monkeypatch, unit)
        passed, address = listen(Settings(port=1))
        with passed:
            assert passed.getsockname() == unit.getsockname()
            assert not passed.get_inheritable()
        assert address == f"http://127.0.0.1:{unit.getsockname()[1]}"
        # A process that this one starts has no part in it.
        assert "LISTEN_PID" not in os.environ
        # The connection waits for the next process.
        socket.create_connection(unit.getsockname()).close()


def test_a_socket_for_another_process_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unit:
        pass_on(monkeypatch, unit)
        monkeypatch.setenv("LISTEN_PID", str(os.getppid()))
        with pytest.raises(ListenError, match="Address already in use"):
            listen(Settings(port=unit.getsockname()[1]))


@pytest.mark.parametrize(("family", "count"), [(socket.AF_UNIX, "1"), (socket.AF_INET, "2")])
def test_another_kind_or_number_of_sockets_is_refused(
    monkeypatch: pytest.MonkeyPatch, family: socket.AddressFamily, count: str
) -> None:
    with socket.socket(family) as unit:
        pass_on(monkeypatch, unit, count)
        with pytest.raises(ListenError, match="one ListenStream"):
            listen(Settings())
