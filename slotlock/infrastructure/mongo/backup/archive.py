"""The file of a backup: BSON documents one after the other, compressed with gzip.

    {format: "slotlock-backup", formatVersion, slotlockVersion, takenAt,
     schemaVersions: {collection: int}, counts: {collection: int}}     the header
    {collection, documents: binary}                                    a batch, as often as needed
    {sha256: binary}                                                   the end

A batch contains documents of one collection as MongoDB returned them, one after the other. The
checksum covers all bytes before the end. It finds damage; it does not prove who wrote the file.
"""

import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from bson import decode, decode_all, encode
from bson.codec_options import CodecOptions
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mongo.client import Document

FORMAT = "slotlock-backup"
FORMAT_VERSION = 1
# More compression takes several times as long for a tenth of the size.
COMPRESSION_LEVEL = 3
# MongoDB returns batches of 16 MiB, and the last document of one may have as many bytes.
MAX_RECORD_BYTES = 40 << 20
LENGTH_BYTES = 4
RAW_DOCUMENTS = CodecOptions(document_class=RawBSONDocument)
AWARE_TIMES: CodecOptions[Document] = CodecOptions(tz_aware=True)


class ArchiveError(Exception):
    """The file is no backup, is damaged, or comes from a newer version; the text says which."""


@value_object
class ArchiveHeader:
    """What a backup contains. `counts` are the documents of each collection."""

    slotlock_version: str
    taken_at: datetime
    schema_versions: dict[str, int]
    counts: dict[str, int]


class ArchiveWriter:
    """Writes a backup into a stream. Without the end, which `close` writes, it is invalid."""

    def __init__(self, stream: BinaryIO, header: ArchiveHeader) -> None:
        self._gzip = gzip.GzipFile("", "wb", COMPRESSION_LEVEL, stream, mtime=0)
        self._checksum = hashlib.sha256()
        self._write(
            {
                "format": FORMAT,
                "formatVersion": FORMAT_VERSION,
                "slotlockVersion": header.slotlock_version,
                "takenAt": header.taken_at,
                "schemaVersions": header.schema_versions,
                "counts": header.counts,
            }
        )

    def write_batch(self, collection: str, documents: bytes) -> None:
        """Append documents of a collection, encoded as BSON one after the other."""
        self._write({"collection": collection, "documents": documents})

    def close(self) -> None:
        """Write the end of the backup; the stream stays open."""
        self._gzip.write(encode({"sha256": self._checksum.digest()}))
        self._gzip.close()

    def _write(self, record: Document) -> None:
        encoded = encode(record)
        self._checksum.update(encoded)
        self._gzip.write(encoded)


def read_header(path: Path) -> ArchiveHeader:
    """Read the whole file, and return its header if the file is complete and undamaged.

    Raises: ArchiveError, and OSError if the file cannot be read.
    """
    with _errors_of_damage():
        header = next(records := _records(path))
        found = Counter[str]()
        for batch in records:
            found[batch["collection"]] += len(_documents(batch))
        archive_header = _to_header(header)
    if {name: count for name, count in archive_header.counts.items() if count} != found:
        raise ArchiveError("the file is damaged: it has other documents than its header says")
    return archive_header


def read_batches(path: Path) -> Iterator[tuple[str, list[RawBSONDocument]]]:
    """Yield collections with the next of their documents. Raises: ArchiveError and OSError."""
    with _errors_of_damage():
        records = _records(path)
        next(records)
        for batch in records:
            yield batch["collection"], _documents(batch)


@contextmanager
def _errors_of_damage() -> Iterator[None]:
    """Raise ArchiveError for whatever reading damaged bytes raises: the checksum comes last."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, BSONError) as error:
        raise ArchiveError(f"the file is damaged, or no backup: {error}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArchiveError("the file is damaged: a record has other fields") from error


def _documents(batch: Document) -> list[RawBSONDocument]:
    return decode_all(batch["documents"], RAW_DOCUMENTS)


def _to_header(header: Document) -> ArchiveHeader:
    return ArchiveHeader(
        header["slotlockVersion"], header["takenAt"], header["schemaVersions"], header["counts"]
    )


def _records(path: Path) -> Iterator[Document]:
    """Yield the header and the batches. The end, with the right checksum, must follow."""
    with path.open("rb") as stream:
        yield from _checked_records(cast("BinaryIO", gzip.GzipFile("", "rb", fileobj=stream)))


def _checked_records(stream: BinaryIO) -> Iterator[Document]:
    checksum = hashlib.sha256()
    header, encoded = _read_record(stream)
    if header.get("format") != FORMAT:
        raise ArchiveError("the file is no backup of slotlock")
    if header["formatVersion"] > FORMAT_VERSION:
        raise ArchiveError(f"slotlock {header['slotlockVersion']} wrote the file in a newer format")
    record: dict[str, Any] = header
    while "sha256" not in record:
        yield record
        checksum.update(encoded)
        record, encoded = _read_record(stream)
    if record["sha256"] != checksum.digest() or stream.read(1):
        raise ArchiveError("the file is damaged: its checksum is wrong")


def _read_record(stream: BinaryIO) -> tuple[Document, bytes]:
    """Return a record and its bytes. Raises: EOFError, BSONError and ArchiveError."""
    length_bytes = stream.read(LENGTH_BYTES)
    length = int.from_bytes(length_bytes, "little")
    if length > MAX_RECORD_BYTES:
        raise ArchiveError("the file is damaged, or no backup: a record is too long")
    encoded = length_bytes + stream.read(max(0, length - LENGTH_BYTES))
    if len(encoded) != length:
        raise EOFError("it ends too early")
    return decode(encoded, AWARE_TIMES), encoded
