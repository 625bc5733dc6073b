"""A backup is the database of one instant, and a restore brings back this and nothing else."""

import asyncio
import gzip
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import pytest
from bson import decode, encode
from pymongo import AsyncMongoClient, MongoClient

from slotlock.cli.main import main
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.backup.archive import (
    ArchiveError,
    ArchiveHeader,
    ArchiveWriter,
    read_header,
)
from slotlock.infrastructure.mongo.backup.dump import EXCLUDED_COLLECTIONS, write_backup
from slotlock.infrastructure.mongo.client import app_name, open_database
from slotlock.infrastructure.mongo.repositories import INDEXES
from slotlock.infrastructure.mongo.slots.slot_documents import to_slot_state
from slotlock.infrastructure.mongo.users.user_documents import to_new_document
from tests.support.apps.deployment import Deployment, app_variant, object_id, open_deployment
from tests.support.apps.processes import named_environment
from tests.support.cli.command_line import command_errors, replace_environment, run_command
from tests.support.clients.client import Json
from tests.support.domain.invariants import assert_one_per_choice_group, assert_valid_slot
from tests.support.model.stored_state import recorded_booking_ids
from tests.support.polling import eventually

DATABASE = "backups"
MEMBERS = 12


@pytest.fixture
def environment(servers: EmbeddedServers) -> dict[str, str]:
    """Return the settings of an operator."""
    return named_environment(servers, DATABASE)


@pytest.fixture
def mongo(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> Iterator[MongoClient[dict[str, Any]]]:
    """Set the settings of an operator, and yield a client of an empty database."""
    replace_environment(monkeypatch, environment)
    with MongoClient[dict[str, Any]](environment["SLOTLOCK_MONGO_URL"], tz_aware=True) as client:
        client.drop_database(DATABASE)
        yield client


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of the backup."""
    return tmp_path / "slotlock.backup"


def all_documents(mongo: MongoClient[dict[str, Any]]) -> dict[str, list[Json]]:
    """Return what a backup contains, by collection."""
    database = mongo[DATABASE]
    found = {
        name: list(database[name].find().sort("_id", 1))
        for name in database.list_collection_names()
        if name not in EXCLUDED_COLLECTIONS
    }
    return {name: documents for name, documents in found.items() if documents}


def insert_users(mongo: MongoClient[dict[str, Any]], count: int) -> None:
    """Insert so many users, with a field of a newer version."""
    now = datetime(2031, 5, 1, tzinfo=UTC)
    emails = [f"{number}@slotlock.test" for number in range(count)]
    users = [
        {**to_new_document("Ada", email, Role.MEMBER, None, now), "favorite": 7} for email in emails
    ]
    mongo[DATABASE]["users"].insert_many(users)


async def book_and_move(deployment: Deployment, app: Any, number: int, slots: list[str]) -> None:
    """Let a user book, move and cancel until the task is cancelled."""
    client = deployment.client(app, number)
    while True:
        for slot_id, other_id in zip(slots, slots[1:] + slots[:1], strict=True):
            booked = await client.book_slot(slot_id, waitMs=2000)
            if booked["__typename"] == "Booked":
                moved = await client.move(booked["booking"]["id"], other_id)
                latest = moved if moved["__typename"] == "BookingMoved" else booked
                await client.cancel_booking(latest["booking"]["id"])


def assert_consistent(documents: dict[str, list[Json]]) -> None:
    """Assert what holds in every state: places, histories, both ends of each move, and records."""
    slots, ended = documents["slots"], documents["ended_bookings"]
    states = [to_slot_state(slot) for slot in slots]
    for state in states:
        assert_valid_slot(state)
    assert_one_per_choice_group(states, datetime.now(UTC))
    live_ids = {booking["id"] for slot in slots for booking in slot["bookings"]}
    ended_ids = {booking["_id"] for booking in ended}
    assert not live_ids & ended_ids, "a booking is both live and ended"
    moves = [booking["movedTo"]["id"] for booking in ended if "movedTo" in booking]
    assert moves
    assert set(moves) <= live_ids | ended_ids, "a booking was lost by its move"
    ids = {str(each) for each in live_ids | ended_ids}
    for record in documents["idempotency_records"]:
        assert set(recorded_booking_ids(record["outcome"])) <= ids, "a record without its effect"


async def test_a_backup_during_bookings_restores_to_a_database_without_any_contradiction(
    mongo: MongoClient[dict[str, Any]],
    environment: dict[str, str],
    log_dir: Path,
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with app_variant(environment, log_dir / "before") as app:
        async with open_deployment(environment, log_dir, MEMBERS) as deployment:
            slots = [await deployment.add_slot(app, capacity=MEMBERS) for _ in range(4)]
            full_id = await deployment.add_slot(app, capacity=1)
            first = await deployment.client(app, 0).book_slot(full_id, idempotencyKey="once-only")
            await deployment.client(app, 1).join(full_id)
            tasks = [
                asyncio.create_task(book_and_move(deployment, app, number, slots))
                for number in range(1, MEMBERS)
            ]
            ended = mongo[DATABASE]["ended_bookings"]

            async def has_ended(count: int) -> bool:
                return await asyncio.to_thread(ended.count_documents, {}) >= count

            await eventually(lambda: has_ended(20), "bookings end")
            assert await asyncio.to_thread(main, ["backup", str(file)]) == 0
            count = await asyncio.to_thread(ended.count_documents, {})
            await eventually(lambda: has_ended(count + 5), "bookings go on after the backup")
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            token = deployment.user_tokens.members[0]
            # Sessions are not restored. A session that was revoked since would be valid again.
            assert mongo[DATABASE]["sessions"].count_documents({}) > 0
    mongo.drop_database(DATABASE)
    assert await asyncio.to_thread(main, ["restore", str(file)]) == 0
    restored = all_documents(mongo)
    assert {name: len(each) for name, each in restored.items()} == {
        name: count for name, count in read_header(file).counts.items() if count
    }
    assert_consistent(restored)
    assert object_id(first["booking"]["id"]) in {
        each["id"] for slot in restored["slots"] for each in slot["bookings"]
    }
    assert "sessions" not in restored
    for index in INDEXES:
        assert index.name in mongo[DATABASE][index.collection].index_information(), index
    with app_variant(environment, log_dir / "after") as app:
        async with open_deployment(environment, log_dir, 1) as deployment:
            later = await deployment.client(app, 0).book_slot(full_id)
            assert later["__typename"] == "SlotFull"
            old = await deployment.http.post(
                app.url + "/graphql",
                json={"query": "{ me { id } }"},
                headers={"Authorization": f"Bearer {token}"},
            )
            assert "UNAUTHENTICATED" in old.text
    assert "restored" in capsys.readouterr().out


class ChangingStream(BytesIO):
    """A file whose first byte lets the database change, after the backup has begun."""

    def __init__(self, change: Callable[[], None]) -> None:
        super().__init__()
        self._change = change

    def write(self, data: Any) -> int:
        """Change the database at the first write."""
        if self.tell() == 0:
            self._change()
        return super().write(data)


async def write_to(stream: BytesIO) -> None:
    """Write a backup of the database of the settings."""
    async with open_database(os.environ["SLOTLOCK_MONGO_URL"]) as database:
        await write_backup(database, stream)


@pytest.mark.parametrize("snapshot", [True, False])
def test_changes_during_a_backup_are_not_in_it(
    mongo: MongoClient[dict[str, Any]], file: Path, monkeypatch: pytest.MonkeyPatch, snapshot: bool
) -> None:
    insert_users(mongo, 3)
    before = all_documents(mongo)
    users = mongo[DATABASE]["users"]
    if not snapshot:  # the control: what the snapshot is for
        start = AsyncMongoClient.start_session
        monkeypatch.setattr(AsyncMongoClient, "start_session", lambda client, **_: start(client))

    def change() -> None:
        users.delete_many({})
        insert_users(mongo, 5)

    stream = ChangingStream(change)
    asyncio.run(write_to(stream))
    file.write_bytes(stream.getvalue())
    assert users.count_documents({}) == 5
    if not snapshot:
        with pytest.raises(ArchiveError, match="other documents"):
            read_header(file)
        return
    assert main(["restore", str(file), "--replace", "--yes"]) == 0
    assert all_documents(mongo) == before


def test_a_restore_needs_an_empty_database_or_replaces_it(
    mongo: MongoClient[dict[str, Any]], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = command_errors(capsys, "backup", str(file))
    assert "empty" in line
    insert_users(mongo, 3)
    before = all_documents(mongo)
    assert re.search(r"^users +3$", run_command(capsys, "backup", str(file)), re.MULTILINE)
    assert file.stat().st_mode & 0o077 == 0
    (line,) = command_errors(capsys, "backup", str(file))
    assert "exists" in line
    mongo[DATABASE]["users"].delete_many({})
    mongo[DATABASE]["teams"].insert_one({"name": "later"})
    (line,) = command_errors(capsys, "restore", str(file))
    assert "documents in teams; --replace" in line
    run_command(capsys, "restore", str(file), "--replace", "--yes")
    assert all_documents(mongo) == before
    (line,) = command_errors(capsys, "restore", str(file.with_name("missing")))
    assert "cannot be read" in line


async def test_a_restore_refuses_while_a_process_is_connected(
    mongo: MongoClient[dict[str, Any]],
    environment: dict[str, str],
    log_dir: Path,
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    insert_users(mongo, 3)
    await asyncio.to_thread(run_command, capsys, "backup", str(file))
    with app_variant(environment, log_dir):
        before = all_documents(mongo)
        arguments = ("restore", str(file), "--replace", "--yes")
        (line,) = await asyncio.to_thread(command_errors, capsys, *arguments)
        assert f"connected to {DATABASE} from 127.0.0.1: stop them first" in line
        assert all_documents(mongo) == before
    await asyncio.to_thread(run_command, capsys, *arguments)


async def test_a_forced_restore_says_what_is_mixed(
    mongo: MongoClient[dict[str, Any]],
    environment: dict[str, str],
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    insert_users(mongo, 3)
    await asyncio.to_thread(run_command, capsys, "backup", str(file))
    before = all_documents(mongo)
    arguments = ("restore", str(file), "--replace", "--yes")
    url = environment["SLOTLOCK_MONGO_URL"]
    async with AsyncMongoClient[Json](url, appname=app_name(DATABASE)) as other:
        await other.admin.command("ping")
        (line,) = await asyncio.to_thread(command_errors, capsys, *arguments)
        assert f"connected to {DATABASE} from 127.0.0.1: stop them first" in line
        assert "With --force, what they write is mixed with the backup" in line
        mongo[DATABASE]["users"].delete_many({})
        assert await asyncio.to_thread(main, [*arguments, "--force"]) == 0
        assert "You use --force: what they write is mixed" in capsys.readouterr().err
    assert all_documents(mongo) == before


class Terminal(StringIO):
    """What a user types."""

    def isatty(self) -> bool:
        """Return that somebody can answer."""
        return True


def test_replacing_a_database_says_what_is_lost_and_needs_a_confirmation(
    mongo: MongoClient[dict[str, Any]],
    file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    insert_users(mongo, 3)
    run_command(capsys, "backup", str(file))
    booked_at = datetime(2031, 5, 1, 14, 3, tzinfo=UTC)
    bookings = [{"at": booked_at - timedelta(hours=1)}, {"at": booked_at}]
    mongo[DATABASE]["slots"].insert_many([{"bookings": bookings}, {"bookings": []}])
    before = all_documents(mongo)
    loss = (
        "backups has 2 slots, 2 bookings and 3 users, the newest booking of 2031-05-01 14:03:00 UTC"
    )
    monkeypatch.setattr("sys.stdin", StringIO(f"{DATABASE}\n"))
    (line,) = command_errors(capsys, "restore", str(file), "--replace")
    assert line.startswith(loss)
    assert "--yes confirms it" in line
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert main(["restore", str(file), "--replace"]) == 1
    assert "not confirmed" in capsys.readouterr().err
    assert all_documents(mongo) == before
    monkeypatch.setattr("sys.stdin", Terminal(f"{DATABASE}\n"))
    assert main(["restore", str(file), "--replace"]) == 0
    assert loss in capsys.readouterr().err
    assert "slots" not in all_documents(mongo)


def flipped(data: bytes, position: int) -> bytes:
    """Return the bytes with one changed."""
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def with_header(data: bytes, **fields: object) -> bytes:
    """Return a backup whose header has these fields, with the checksum of that."""
    raw = gzip.decompress(data)
    length = int.from_bytes(raw[:4], "little")
    batches = raw[length : -len(encode({"sha256": bytes(32)}))]
    records = encode({**decode(raw[:length]), **fields}) + batches
    return gzip.compress(records + encode({"sha256": sha256(records).digest()}))


# Each with what the refusal says.
DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "damaged"),
    "truncated": (lambda data: data[: len(data) // 2], "damaged"),
    "without its end": (lambda data: data[:-9], "damaged"),
    "without its last record": (
        lambda data: gzip.compress(gzip.decompress(data)[:-50]),
        "damaged",
    ),
    "flipped bit": (lambda data: flipped(data, len(data) // 2), "damaged"),
    "altered document": (
        lambda data: gzip.compress(
            gzip.decompress(data).replace(b"2@slotlock.test", b"9@slotlock.test")
        ),
        "its checksum is wrong",
    ),
    "another file": (lambda _: gzip.compress(encode({"a": 1})), "no backup of slotlock"),
    "no gzip": (lambda _: b"users" * 100, "no backup"),
    "altered counts": (
        lambda data: with_header(data, counts={"users": 4}),
        "other documents than its header says",
    ),
    "longer": (lambda data: data + b"more", "damaged"),
    "newer format": (lambda data: with_header(data, formatVersion=2), "in a newer format"),
    "newer documents": (
        lambda data: with_header(data, schemaVersions={"users": 99}),
        "this version of slotlock is too old for it",
    ),
}


@pytest.mark.parametrize("compress", [gzip.compress, bytes], ids=["records", "file"])
def test_no_changed_bit_is_read_as_a_backup_or_raises_another_error(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    stream = BytesIO()
    users = encode({"_id": 1, "email": "mia@slotlock.test"})
    header = ArchiveHeader("1.0.0", datetime.now(UTC), {"users": 1}, {"users": 1})
    writer = ArchiveWriter(stream, header)
    writer.write_batch("users", users)
    writer.close()
    data = stream.getvalue() if compress is bytes else gzip.decompress(stream.getvalue())
    path = tmp_path / "changed.backup"
    # The bytes of the header of gzip are no part of the backup.
    for position in range(10 if compress is bytes else 0, len(data)):
        path.write_bytes(compress(flipped(data, position)))
        with pytest.raises(ArchiveError):
            read_header(path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_newer_backup_is_refused_before_anything_changes(
    mongo: MongoClient[dict[str, Any]], file: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    insert_users(mongo, 3)
    run_command(capsys, "backup", str(file))
    change, reason = DAMAGES[damage]
    file.write_bytes(change(file.read_bytes()))
    before = all_documents(mongo)
    (line,) = command_errors(capsys, "restore", str(file), "--replace", "--yes")
    assert line.startswith(f"{file}: ")
    assert reason in line
    assert all_documents(mongo) == before
