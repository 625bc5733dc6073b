"""A server process that has imported the app and forks variants of it without delay.

Imports take most of the start of a process, and nearly every negative control starts a variant.
"""

import atexit
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from tests.support.apps.processes import READY_TIMEOUT_S, AppProcess, free_port, is_http_ready
from tests.support.polling import wait_until

# uvicorn imports them by name when it starts.
UVICORN_MODULES = ("uvicorn.lifespan.on", "uvicorn.loops.auto", "uvicorn.loops.uvloop")


class ForkedProcess:
    """A child of the fork server, with the methods of `Popen` that AppProcess uses."""

    def __init__(self, pid: int, exit_file: Path) -> None:
        self.pid = pid
        self._exit_file = exit_file
        # Once it is known, another process or a thread of one may have the pid.
        self._exit_code: int | None = None

    def send_signal(self, number: int) -> None:
        """Send a signal if the process still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Return None while the process runs, then its exit code; -9 if it did not write one."""
        if self._exit_code is None:
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                written = self._exit_file.read_text() if self._exit_file.exists() else ""
                self._exit_code = int(written or -signal.SIGKILL)
        return self._exit_code

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float = 30.0) -> int:
        """Wait for the process to end and return its exit code."""
        wait_until(lambda: self.poll() is not None, "the process is gone", timeout)
        return cast("int", self.poll())


@cache
def _start_fork_server() -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.support.apps.fork_server"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def stop_fork_server() -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.close()
        server.wait(10)
        server.stdout.close()

    atexit.register(stop_fork_server)
    return server


def _fork(settings: Mapping[str, str], log_file: Path) -> ForkedProcess:
    server = _start_fork_server()
    assert server.stdin is not None
    assert server.stdout is not None
    own = {name: value for name, value in os.environ.items() if not name.startswith("SLOTLOCK_")}
    server.stdin.write(json.dumps([{**own, **settings}, str(log_file)]) + "\n")
    server.stdin.flush()
    return ForkedProcess(int(server.stdout.readline()), _exit_file(log_file))


def _exit_file(log_file: Path) -> Path:
    return log_file.with_suffix(".exit")


@contextmanager
def _forked_process(
    settings: Mapping[str, str], directory: Path, is_app_ready: Callable[[AppProcess], bool]
) -> Iterator[AppProcess]:
    directory.mkdir(parents=True, exist_ok=True)
    log_file, port = directory / "app.log", settings.get("PORT") or str(free_port())
    forked = _fork({**settings, "PORT": port}, log_file)
    process = cast("subprocess.Popen[bytes]", forked)
    app = AppProcess(f"http://127.0.0.1:{port}", process, settings, log_file)

    def is_ready() -> bool:
        if is_app_ready(app):
            return True
        assert forked.poll() is None, f"the app ended: {app.log}"
        return False

    try:
        wait_until(is_ready, "the app is ready", READY_TIMEOUT_S)
        yield app
    finally:
        forked.kill()
        forked.wait()


def _is_serving_queue(app: AppProcess) -> bool:
    return app.log_file.exists() and "serving the admission queue" in app.log


def forked_app(
    settings: Mapping[str, str], directory: Path, ready_path: str = "/readyz"
) -> AbstractContextManager[AppProcess]:
    """Fork a process that serves the app with these settings."""
    return _forked_process(settings, directory, lambda app: is_http_ready(app, ready_path))


def forked_worker(
    settings: Mapping[str, str], directory: Path
) -> AbstractContextManager[AppProcess]:
    """Fork a process that only processes the admission queue."""
    return _forked_process({**settings, "VARIANT_COMMAND": "worker"}, directory, _is_serving_queue)


def run_forked_command(settings: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """Run a command of slotlock to its end. Return its exit code and what it printed."""
    with TemporaryDirectory() as directory:
        output_file = Path(directory) / "output"
        process = _fork({**settings, "VARIANT_COMMAND": " ".join(arguments)}, output_file)
        return process.wait(), output_file.read_text()


def _run_forked(environment: dict[str, str], log_file: str, serve: Callable[[], int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(environment)
    code = serve()
    _exit_file(Path(log_file)).write_text(str(code))


def _import_app() -> Callable[[], int]:
    """Import what a variant imports while it starts, and return the function that serves it."""
    from slotlock.api import app_state
    from slotlock.api.board import endpoint, files
    from slotlock.api.board.documents import board_documents
    from slotlock.api.board.modules import merged_modules
    from slotlock.auth import passwords
    from tests.support.apps import variant
    from tests.support.cli import forked_exports
    from tests.support.stores.cheap_hashes import hash_cheaply

    for late in ("slotlock.cli.serve", "slotlock.cli.worker", *UVICORN_MODULES):
        importlib.import_module(late)
    forked_exports.fork_instead_of_starting()
    # Processes that a test starts as an operator does hash slowly.
    hash_cheaply()
    passwords._CONTEXT.hash("")  # imports the library, so that the forked processes need not
    # A fifth of a start is to read the files of the board and to merge its modules.
    sources, documents = files.board_files(), board_documents()
    modules = {name: text.decode() for name, text in sources.items() if files.is_module(name)}
    merged = merged_modules(modules, files.START, alone=files.ALONE)
    vars(endpoint).update(board_files=lambda: dict(sources))
    vars(files).update(merged_modules=lambda *_, **__: merged)
    vars(app_state).update(board_documents=lambda: dict(documents))
    gc.freeze()  # a collection in a forked process would copy all pages of these objects
    return variant.serve_variant


def _reap(*_: object) -> None:
    """Wait for the processes that ended: their processor time counts for this one then."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    """Fork a process for each line of standard input: its settings and log file as JSON.

    The apps among these processes ask for others, which build exports.
    """
    from tests.support.cli import forked_exports

    serve = _import_app()
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        ready, _, _ = select.select([sys.stdin, forked_exports.requests], [], [])
        if forked_exports.requests in ready:
            forked_exports.fork_export()
        elif line := sys.stdin.readline():  # a test asks for one process after the other
            _fork_app(line, serve)
        else:
            return


def _fork_app(line: str, serve: Callable[[], int]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            environment, log_file = json.loads(line)
            _run_forked(environment, log_file, serve)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
    sys.stdout.write(f"{pid}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
