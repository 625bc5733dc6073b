"""What an index is, which indexes a database lacks, and the writes that have to wait for one."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from pymongo import IndexModel, UpdateOne
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import OperationFailure

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mongo.client import Database, Document, IndexMissingError
from slotlock.infrastructure.mongo.search_words import HAS_OUTDATED_WORDS

SEARCH_WORDS_BATCH_SIZE = 500
# BadValue: there is no index with the name of the hint.
NO_SUCH_INDEX = 2
# Of the options that slotlock uses, those that decide what an index promises.
COMPARED_OPTIONS = ("unique", "sparse", "expireAfterSeconds", "partialFilterExpression")


@value_object
class Index:
    """An index of a collection: its keys in order, and the options of MongoDB."""

    collection: str
    name: str
    keys: Sequence[tuple[str, int]]
    options: Mapping[str, object]

    @property
    def full_name(self) -> str:
        """The name with that of the collection."""
        return f"{self.collection}.{self.name}"

    @property
    def is_unique(self) -> bool:
        """Whether the index keeps a promise, and does not only make queries fast."""
        return bool(self.options.get("unique"))

    def to_model(self) -> IndexModel:
        """Return the description of the index for the driver."""
        return IndexModel(list(self.keys), name=self.name, **self.options)

    def matches(self, stored: Document) -> bool:
        """Return whether a stored index has the same keys and promises."""
        return list(stored["key"].items()) == list(self.keys) and all(
            (stored.get(name) or None) == (self.options.get(name) or None)
            if name != "expireAfterSeconds"
            else stored.get(name) == self.options.get(name)
            for name in COMPARED_OPTIONS
        )


def indexes_of(
    collection: str, indexes: Mapping[str, tuple[list[tuple[str, int]], Document]]
) -> tuple[Index, ...]:
    """Return the indexes of a collection, from their names, keys and options."""
    return tuple(
        Index(collection, name, tuple(keys), options) for name, (keys, options) in indexes.items()
    )


class IndexConflictError(Exception):
    """The database has an index of this name that is another one."""


class RequiredIndexes:
    """The unique indexes that this process waits for. Writes that rely on one are rejected."""

    def __init__(self) -> None:
        self._missing: frozenset[str] = frozenset()

    def set_missing(self, missing: Iterable[Index]) -> None:
        """Replace what is missing."""
        self._missing = frozenset(index.full_name for index in missing if index.is_unique)

    def require(self, *full_names: str) -> None:
        """Check that none of these indexes is missing. Raises: IndexMissingError."""
        if self._missing and (missing := self._missing.intersection(full_names)):
            raise IndexMissingError(f"the index {min(missing)} is missing")


async def repair_outdated(
    collection: AsyncCollection[Document],
    fields: Sequence[str],
    derive: Callable[[Document], Document],
) -> None:
    """Write what follows from these fields of the documents that another folding wrote.

    These are none before the index is built: a repair must not scan the collection.
    """
    limit = SEARCH_WORDS_BATCH_SIZE
    while True:
        found = collection.find(HAS_OUTDATED_WORDS, fields, limit=limit, hint="folding")
        try:
            documents = await found.to_list()
        except OperationFailure as error:
            if error.code == NO_SUCH_INDEX:
                return
            raise
        if not documents:
            return
        # A document that changes meanwhile is no longer as it was found.
        updates = [UpdateOne(each, {"$set": derive(each)}) for each in documents]
        await collection.bulk_write(updates, ordered=False)


async def find_missing(database: Database, indexes: Iterable[Index]) -> list[Index]:
    """Return the indexes that the database lacks, or that are still being built.

    Raises:
        IndexConflictError: an index of the same name differs.
    """
    by_collection: defaultdict[str, list[Index]] = defaultdict(list)
    for index in indexes:
        by_collection[index.collection].append(index)
    missing = []
    existing = set(await database.list_collection_names())
    for collection, wanted in by_collection.items():
        stored = await _find_stored(database, collection) if collection in existing else {}
        for index in wanted:
            found = stored.get(index.name)
            if found is None or "buildUUID" in found:
                missing.append(index)
            elif not index.matches(found):
                raise IndexConflictError(
                    f"the index {index.full_name} of the database differs from that of this "
                    "version: drop it, and run `slotlock migrate`"
                )
    return missing


async def _find_stored(database: Database, collection: str) -> dict[str, Document]:
    """Return the indexes of a collection by name. One in progress is `{buildUUID, spec}`."""
    # Without the option, the reply does not tell an index that is still being built.
    command = {"listIndexes": collection, "includeBuildUUIDs": True, "cursor": {"batchSize": 1000}}
    reply = await database.command(command)
    found: dict[str, Document] = {}
    for each in reply["cursor"]["firstBatch"]:
        found[each["spec"]["name"] if "spec" in each else each["name"]] = each
    return found
