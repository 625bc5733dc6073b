"""`slotlock backup` and `slotlock restore`: the database as a file, and its way back."""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import BinaryIO

from slotlock.api.settings.settings import Settings, read_settings
from slotlock.cli.commands.table import format_rows
from slotlock.cli.deployment import (
    CommandError,
    check_mongodb,
    confirm,
    settings_with_mongodb,
    stopped_deployment,
)
from slotlock.domain.shared.text import format_in_zone
from slotlock.infrastructure.mongo.backup.archive import ArchiveError, ArchiveHeader, read_header
from slotlock.infrastructure.mongo.backup.dump import NoSnapshotError, write_backup
from slotlock.infrastructure.mongo.backup.restore import (
    DatabaseInUseError,
    DatabaseNotEmptyError,
    RestoreIncompleteError,
    check_unused,
    find_contents,
    restore_backup,
)
from slotlock.infrastructure.mongo.client import (
    Database,
    database_name,
    open_database,
)

FORCE_RISK = (
    "what they write is mixed with the backup, and they use what they remember of the old data "
    "until they are restarted"
)


def backup_database(args: Namespace) -> str:
    """Write a backup of the database of the settings, and return what it contains."""
    settings = settings_with_mongodb()
    asyncio.run(check_mongodb(settings))
    return asyncio.run(backup(settings, args.file))


def restore_database(args: Namespace) -> str:
    """Restore a backup into the database of the settings, and return what it contained."""
    with stopped_deployment(read_settings()) as settings:
        asyncio.run(check_mongodb(settings))
        asyncio.run(check_stopped(settings, force=args.force))
        if args.replace and not args.yes:
            loss = asyncio.run(describe_loss(settings, args.file))
            if loss is not None:
                confirm(loss, database_name(settings.mongo_url or ""))
                asyncio.run(check_stopped(settings, force=args.force))
        return asyncio.run(restore(settings, args.file, replace=args.replace))


async def backup(settings: Settings, file: Path) -> str:
    """Write a backup, and return what it contains.

    The file appears when it is complete. Raises: CommandError and PyMongoError.
    """
    try:
        async with open_database(settings.mongo_url or "") as database:
            with _new_file(file) as out:
                header = await write_backup(database, out)
    except NoSnapshotError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}") from error
    return _describe(header, f"wrote {file}")


async def check_stopped(settings: Settings, *, force: bool) -> None:
    """Check that no process of slotlock is connected to the database; by force, only warn.

    Raises: CommandError and PyMongoError.
    """
    try:
        async with _open_for_restore(settings) as database:
            await check_unused(database)
    except DatabaseInUseError as error:
        if not force:
            raise CommandError(f"{error}. With --force, {FORCE_RISK}") from error
        print(f"slotlock: {error}. You use --force: {FORCE_RISK}", file=sys.stderr, flush=True)


async def describe_loss(settings: Settings, file: Path) -> str | None:
    """Return what a restore of this file deletes; None if the database is empty.

    Raises: CommandError and PyMongoError.
    """
    async with _restoring(settings, file) as database:
        header = await asyncio.to_thread(read_header, file)
        contents = await find_contents(database)
    if contents is None:
        return None
    newest = contents.newest_booking
    since = f", the newest booking of {format_in_zone(newest)}" if newest else ""
    return (
        f"{database.name} has {contents.slots} slots, {contents.bookings} bookings and "
        f"{contents.users} users{since}. All of it is deleted; the backup is of "
        f"{format_in_zone(header.taken_at)}"
    )


async def restore(settings: Settings, file: Path, *, replace: bool) -> str:
    """Restore a backup, and return what it contained. Raises: CommandError and PyMongoError."""
    async with _restoring(settings, file) as database:
        header = await restore_backup(database, file, replace=replace)
    return _describe(header, f"restored {file}")


@asynccontextmanager
async def _restoring(settings: Settings, file: Path) -> AsyncIterator[Database]:
    """Yield the database. Raises: CommandError inside the context."""
    try:
        async with _open_for_restore(settings) as database:
            yield database
    except ArchiveError as error:
        raise CommandError(f"{file}: {error}") from error
    except DatabaseNotEmptyError as error:
        raise CommandError(f"{error}; --replace deletes everything there first") from error
    except RestoreIncompleteError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error


def _open_for_restore(settings: Settings) -> AbstractAsyncContextManager[Database]:
    return open_database(settings.mongo_url or "", "slotlock restore")


def _describe(header: ArchiveHeader, what: str) -> str:
    counts = format_rows(("collection", "documents"), [*header.counts.items()], as_json=False)
    taken = f"{format_in_zone(header.taken_at)} by slotlock {header.slotlock_version}"
    return f"{counts}\n{what}: {sum(header.counts.values())} documents, taken {taken}"


@contextmanager
def _new_file(file: Path) -> Iterator[BinaryIO]:
    """Yield a stream into a file that gets its name when it is complete and on the disk."""
    if file.exists():
        raise CommandError(f"{file} exists; a backup needs a new file")
    partial = file.with_name(file.name + ".partial")
    # The file contains the hashes of passwords.
    descriptor = os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        partial.rename(file)
    finally:
        partial.unlink(missing_ok=True)
