"""`make bench-mail`: how fast the mails of a cancellation reach a mail server.

An organizer cancels ten slots with all their bookings. The mails would wait for a minute, which is
skipped. A probe books places one after the other, before that and meanwhile; the table shows the
time of these requests. With `--serve`, the process that books also sends.
"""

import argparse
import asyncio
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import quantiles
from threading import Event, Thread

import httpx
from bson import ObjectId
from pymongo.database import Database

from bench.accounts import create_accounts
from bench.app_process import free_port, launch
from bench.calls import BOOK
from bench.comparison.servers import BenchmarkServers, running_servers
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import TargetApp, running, stop
from bench.comparison.targets.slots import Document, slotlock_document
from bench.machine import machine_summary
from slotlock.devserver.mail_catcher import MailCatcher, catching_mail
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.users.user_documents import to_new_document

SPAWN = multiprocessing.get_context("spawn")
POLL_S, TIMEOUT_S, REST_S, PROBE_PAUSE_S = 0.2, 600.0, 10.0, 0.01
CANCELLED_SLOTS, PROBE_SLOTS = 10, 20_000
CANCEL = "mutation C($id: ID!) { cancelSlot(slotId: $id) { __typename } }"


def main() -> int:
    """Return 0 if all mails arrived once, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.mail", description=__doc__)
    parser.add_argument("--mails", type=int, default=10_000, metavar="N", help="default 10000")
    parser.add_argument("--serve", action="store_true", help="without a worker")
    args = parser.parse_args()
    print(machine_summary())
    with running_servers() as servers, _mail_server() as (port, count_mails):
        return measure(servers, args.mails, port, count_mails, in_serve=args.serve)


@contextmanager
def _mail_server() -> Iterator[tuple[int, Callable[[], int]]]:
    """Serve SMTP in a process of its own; yield the port, and what counts the mails."""
    ours, other_end = SPAWN.Pipe()
    process = SPAWN.Process(target=_take_mails, args=(other_end,), daemon=True)
    process.start()

    def count_mails() -> int:
        ours.send(None)
        return int(ours.recv())

    try:
        yield int(ours.recv()), count_mails
    finally:
        process.kill()


def _take_mails(pipe: Connection) -> None:
    catcher = MailCatcher()
    with catching_mail(catcher) as port:
        pipe.send(port)
        while True:
            pipe.recv()
            pipe.send(catcher.count)


def _token(environment: Mapping[str, str], role: Role) -> str:
    url = environment["SLOTLOCK_MONGO_URL"]
    [account] = asyncio.run(create_accounts(url, slotlock_target.SECRET, 1, role))
    return account.token


def measure(
    servers: BenchmarkServers,
    mails: int,
    mail_port: int,
    count_mails: Callable[[], int],
    *,
    in_serve: bool,
) -> int:
    """Print the mails of a minute, their CPU time, and the time of bookings."""
    options = {
        **slotlock_target.RATE_LIMITS_OFF,
        "SLOTLOCK_SMTP_URL": f"smtp://127.0.0.1:{mail_port}",
        "SLOTLOCK_MAIL_FROM": "School <noreply@school.test>",
        "SLOTLOCK_PUBLIC_URL": "https://school.test",
        "SLOTLOCK_MAIL_RATE": "100000",
        "SLOTLOCK_QUEUE_WORKER": "on" if in_serve else "off",
    }
    serve = slotlock_target.command(servers.embedded, 1, options)
    database = servers.client[slotlock_target.DATABASE_NAME]
    with ExitStack() as stack:
        app = sender = stack.enter_context(running("serve", serve, servers.folder))
        if not in_serve:
            sender = stack.enter_context(_worker(serve.environment, servers.folder))
        slots = _seed(database, mails, datetime.now(UTC) + timedelta(days=2))
        member, organizer = map(partial(_token, serve.environment), (Role.MEMBER, Role.ORGANIZER))
        # It has no address, so that its own mails cost nothing.
        database["users"].update_one({"name": "Somebody"}, {"$set": {"email": "nobody"}})
        probe = _Probe(app, member, slots[CANCELLED_SLOTS:])
        client = stack.enter_context(httpx.Client(trust_env=False))
        _wait_until(lambda: database["outbox_checkpoints"].count_documents({}) == 1)
        stack.enter_context(probe.booking())
        time.sleep(REST_S)
        at_rest = probe.take()
        # The probe's own mails wait for a minute.
        ours = {"kind": "cancelled"}
        cancelled_at, cpu_s = time.monotonic(), sum(sender.cpu_seconds().values())
        for slot in slots[:CANCELLED_SLOTS]:
            _post(app, CANCEL, slot, organizer, client)
        _wait_until(lambda: database["outbox"].count_documents(ours) == mails)
        queued_at = time.monotonic()
        probe.take()
        database["outbox"].update_many(ours, [{"$set": {"dueAt": "$$NOW"}}])
        _wait_until(lambda: count_mails() >= mails)
        sent_at, meanwhile = time.monotonic(), probe.take()
        _wait_until(lambda: database["outbox"].count_documents({**ours, "state": "sent"}) == mails)
        cpu_s = sum(sender.cpu_seconds().values()) - cpu_s
    print(f"{mails} mails: queued within {queued_at - cancelled_at:.1f} s")
    print(f"sent within {sent_at - queued_at:.1f} s: {mails / (sent_at - queued_at) * 60:.0f}/min")
    print(f"CPU of the process that sends: {cpu_s / mails * 1000:.1f} ms a mail")
    for name, seconds in (("before", at_rest), ("meanwhile", meanwhile)):
        cuts = [each * 1000 for each in quantiles(seconds, n=100)]
        print(f"{len(seconds)} bookings {name}: median {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms")
    return 0 if count_mails() == mails else 1


@contextmanager
def _worker(environment: Mapping[str, str], folder: Path) -> Iterator[TargetApp]:
    process = launch("worker", environment, free_port(), folder / "worker.log")
    try:
        yield TargetApp("", process)
    finally:
        stop(process)


def _seed(database: Database[Document], mails: int, first_day: datetime) -> list[str]:
    """Insert users, the slots that all of them have booked, and those of the probe."""
    now = datetime.now(UTC)
    users = [
        to_new_document(f"User {n}", f"{n}@school.test", Role.MEMBER, "hash", now)
        for n in range(mails)
    ]
    database["users"].insert_many(users)
    capacity = mails // CANCELLED_SLOTS
    slots = [slotlock_document(n, first_day) for n in range(CANCELLED_SLOTS + PROBE_SLOTS)]
    for number, slot in enumerate(slots[:CANCELLED_SLOTS]):
        of_slot = users[number * capacity : (number + 1) * capacity]
        bookings = [{"id": ObjectId(), "user": user["_id"], "at": now} for user in of_slot]
        slot |= {"capacity": capacity, "remaining": 0, "bookings": bookings}
    database["slots"].insert_many(slots)
    return [f"slot_{slot['_id']}" for slot in slots]


class _Probe:
    """Books slots one after the other, in a thread."""

    def __init__(self, app: TargetApp, token: str, slots: Sequence[str]) -> None:
        self._app, self._token, self._slots = app, token, iter(slots)
        self._seconds: list[float] = []
        self._stop = Event()

    @contextmanager
    def booking(self) -> Iterator[None]:
        """Book while the context is open."""
        thread = Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        with httpx.Client(trust_env=False) as client:
            while not self._stop.is_set():
                started_at = time.monotonic()
                _post(self._app, BOOK, next(self._slots), self._token, client)
                self._seconds.append(time.monotonic() - started_at)
                self._stop.wait(PROBE_PAUSE_S)

    def take(self) -> list[float]:
        """Return the times since the last call, in seconds."""
        taken, self._seconds = self._seconds, []
        return taken


def _post(app: TargetApp, query: str, slot: str, token: str, client: httpx.Client) -> None:
    body = {"query": query, "variables": {"id": slot}}
    headers = {"Authorization": f"Bearer {token}"}
    response = client.post(f"{app.url}/graphql", json=body, headers=headers, timeout=60).json()
    [outcome] = response["data"].values()
    if outcome["__typename"] not in ("Booked", "Slot"):
        raise RuntimeError(str(outcome))


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the mails do not arrive")
        time.sleep(POLL_S)


if __name__ == "__main__":
    sys.exit(main())
