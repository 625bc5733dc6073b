"""`slotlock migrate`: builds missing indexes, and fills the new fields of existing documents."""

import asyncio
import logging.config
from argparse import Namespace

from pymongo.errors import DuplicateKeyError

from slotlock.api.settings.settings import Settings
from slotlock.api.telemetry.logs import logging_config
from slotlock.cli.deployment import CommandError, check_mongodb, settings_with_mongodb
from slotlock.infrastructure.mongo.client import open_database
from slotlock.infrastructure.mongo.indexes.index import IndexConflictError
from slotlock.infrastructure.mongo.repositories import Repositories


def migrate_database(args: Namespace) -> str:
    """Build what is missing in the database of the settings, and return what was built."""
    settings = settings_with_mongodb()
    asyncio.run(check_mongodb(settings))
    return asyncio.run(migrate(settings, args.deadline * 60))


async def migrate(settings: Settings, deadline_s: float) -> str:
    """Build what is missing, and return what was built.

    Raises: CommandError if an index cannot be built, and PyMongoError, also after the deadline.
    """
    logging.config.dictConfig(logging_config(settings.log_format, settings.log_level))
    try:
        async with open_database(settings.mongo_url or "") as database:
            built = await Repositories(database).indexes.build_missing(deadline_s)
    except (IndexConflictError, DuplicateKeyError) as error:
        raise CommandError(str(error)) from error
    return "\n".join([*(f"built {index.full_name}" for index in built), "all indexes exist"])
