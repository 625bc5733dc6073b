"""Checks of MongoDB: version, replica set, majority, indexes and documents."""

from collections.abc import AsyncIterator
from datetime import UTC, timedelta
from time import time

from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure, PyMongoError

from slotlock.api.settings.settings import Settings
from slotlock.cli.deployment import FIRST_ADMIN
from slotlock.cli.doctor.address_checks import check_addresses
from slotlock.cli.doctor.finding import Finding, check_clock, fail, ok, warning
from slotlock.cli.doctor.worker_checks import check_workers
from slotlock.devserver.binaries import MONGOD
from slotlock.domain.site.site import SITE_FIELDS
from slotlock.infrastructure.mongo.client import (
    DEFAULT_DATABASE,
    OPERATION_TIMEOUT_MS,
    SELECTION_TIMEOUT_MS,
    Database,
    Document,
    open_database,
    supports_transactions,
)
from slotlock.infrastructure.mongo.document_parts import SCHEMA_VERSION_FIELD, SCHEMA_VERSIONS
from slotlock.infrastructure.mongo.indexes.index import IndexConflictError, find_missing
from slotlock.infrastructure.mongo.repositories import INDEXES
from slotlock.infrastructure.mongo.site.site_repository import SiteRepository
from slotlock.infrastructure.mongo.users.account_admin_writer import has_admin

HEALTHY_STATES = {"PRIMARY", "SECONDARY", "ARBITER"}
MAX_LAG = timedelta(seconds=10)
# A transaction of a killed process locks its slots for this time; see the guide for operators.
MAX_TRANSACTION_LIFETIME_S = 5
MIGRATE = "run `slotlock migrate`"


async def check_mongodb(settings: Settings) -> AsyncIterator[Finding]:
    """Yield a finding for each check. Those that need the one before end with its failure."""
    url = settings.mongo_url or ""
    # The client of `connect` would reject a server that has not joined a replica set.
    try:
        async with AsyncMongoClient[Document](
            url, timeoutMS=OPERATION_TIMEOUT_MS, serverSelectionTimeoutMS=SELECTION_TIMEOUT_MS
        ) as client:
            sent_s = time()
            hello = await client.admin.command("hello")
            received_s = time()
            version = (await client.admin.command("buildInfo"))["version"]
            yield _check_version(version)
            server_s = hello["localTime"].replace(tzinfo=UTC).timestamp()
            limit_s = settings.max_clock_skew_s
            yield check_clock("MongoDB clock", sent_s, server_s, received_s, limit_s)
            topology = _check_topology(hello)
            yield topology
            if not supports_transactions(hello) or topology.advice:
                return
            if "setName" in hello:
                yield await _check_members(client)
                yield await _check_transaction_lifetime(client)
    except PyMongoError as error:
        yield fail("MongoDB", _reason(error), "start it, or correct SLOTLOCK_MONGO_URL")
        return
    async with open_database(url) as database:
        async for finding in _check_database(database, settings):
            yield finding


def _reason(error: PyMongoError) -> str:
    return str(error).partition(" (")[0].partition(", full error")[0]


def _check_version(version: str) -> Finding:
    if int(version.split(".")[0]) < MONGOD.min_major_version:
        return fail("MongoDB", f"version {version} is too old", "upgrade to MongoDB 6 or newer")
    return ok("MongoDB", f"version {version} responds")


def _check_topology(hello: Document) -> Finding:
    check = "MongoDB topology"
    if not supports_transactions(hello):
        advice = "start it with --replSet rs0 and run rs.initiate() once"
        return fail(check, "not a replica set, so it has no transactions", advice)
    if "setName" not in hello:
        return ok(check, "a sharded cluster, through mongos")
    if not hello.get("isWritablePrimary"):
        advice = f"name the set in SLOTLOCK_MONGO_URL: replicaSet={hello['setName']}"
        return fail(check, "this member is not the primary", advice)
    return ok(check, f"replica set {hello['setName']}, primary {hello['me']}")


async def _check_members(client: AsyncMongoClient[Document]) -> Finding:
    check = "MongoDB members"
    try:
        status = await client.admin.command("replSetGetStatus")
    except OperationFailure as error:
        return _not_allowed(check, error)
    members = status["members"]
    newest = max(each["optimeDate"] for each in members if "optimeDate" in each)
    problems = [
        f"{each['name']} is {each['stateStr']}"
        for each in members
        if each["health"] != 1 or each["stateStr"] not in HEALTHY_STATES
    ] or [
        f"{each['name']} is {(newest - each['optimeDate']).total_seconds():.0f} s behind"
        for each in members
        if "optimeDate" in each and newest - each["optimeDate"] > MAX_LAG
    ]
    if problems:
        return warning(check, ", ".join(problems), "see rs.status() and the log of the member")
    return ok(check, f"{len(members)}, all healthy")


async def _check_transaction_lifetime(client: AsyncMongoClient[Document]) -> Finding:
    check, name = "MongoDB transactions", "transactionLifetimeLimitSeconds"
    try:
        seconds = (await client.admin.command({"getParameter": 1, name: 1}))[name]
    except OperationFailure as error:
        return _not_allowed(check, error)
    found = f"one of a killed process ends after {seconds} s"
    if seconds > MAX_TRANSACTION_LIFETIME_S:
        advice = f"start mongod with --setParameter {name}={MAX_TRANSACTION_LIFETIME_S}"
        return warning(check, found, advice)
    return ok(check, found)


def _not_allowed(check: str, error: OperationFailure) -> Finding:
    return warning(check, f"not checked: {_reason(error)}", "grant the role clusterMonitor")


async def _check_database(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    try:
        probe = {"$currentDate": {"at": True}}
        await database["write_probes"].update_one({"_id": "write"}, probe, upsert=True)
        yield ok("MongoDB majority", "a majority of the members confirms writes")
    except PyMongoError as error:
        advice = "see rs.status(), the free disk space and the roles of the user"
        yield fail("MongoDB majority", f"no write was confirmed: {_reason(error)}", advice)
        return
    try:
        yield await _check_indexes(database)
        yield await _check_documents(database)
        yield await check_addresses(database)
        yield await _check_admin(database, settings)
        yield await _check_site(database)
        async for finding in check_workers(database):
            yield finding
    except PyMongoError as error:
        advice = f"grant the role readWrite on {database.name or DEFAULT_DATABASE}"
        yield fail("MongoDB indexes", _reason(error), advice)


async def _check_indexes(database: Database) -> Finding:
    check = "MongoDB indexes"
    collections = set(await database.list_collection_names())
    if not collections.intersection(index.collection for index in INDEXES):
        return ok(check, f"the database {database.name} is empty; the first start creates them")
    try:
        missing = await find_missing(database, INDEXES)
    except IndexConflictError as error:
        return fail(check, str(error), "see the guide for operators, Upgrade")
    names = ", ".join(index.full_name for index in missing)
    if any(index.is_unique for index in missing):
        return fail(check, f"missing or incomplete: {names}", f"{MIGRATE}; some writes wait for it")
    if missing:
        return warning(check, f"missing or incomplete: {names}", f"{MIGRATE}; queries are slow")
    return ok(check, f"all {len(INDEXES)} exist")


async def _check_documents(database: Database) -> Finding:
    """Check that no sampled document is of a release that this one does not understand."""
    check = "MongoDB documents"
    for collection, version in SCHEMA_VERSIONS.items():
        newest = await database[collection].find_one(
            {}, {SCHEMA_VERSION_FIELD: 1}, sort={"_id": -1}
        )
        stored = (newest or {}).get(SCHEMA_VERSION_FIELD, 1)
        if stored > version:
            found = f"{collection} has version {stored}, and this release knows {version}"
            return fail(check, found, "run the release that wrote them, or a newer one")
    return ok(check, "this release understands the newest document of each collection")


async def _check_admin(database: Database, settings: Settings) -> Finding:
    if await has_admin(database):
        return ok("admin", "there is one")
    if settings.admin_email is not None:
        return ok("admin", f"there is none; the next start creates {settings.admin_email}")
    return warning("admin", "no account is an admin, and only one makes organizers", FIRST_ADMIN)


async def _check_site(database: Database) -> Finding:
    own = await SiteRepository(database).find()
    names = [name for name, attribute in SITE_FIELDS.items() if getattr(own, attribute)]
    if not names:
        return ok("site", "as the settings say")
    return ok("site", f"the board sets {', '.join(names)}, whose settings have no effect")
