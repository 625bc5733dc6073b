"""`slotlock migrate`: builds the indexes that a database lacks, before or after new processes."""

import logging.config

from pymongo.errors import DuplicateKeyError

from slotlock.api.settings.settings import Settings
from slotlock.api.telemetry.logs import logging_config
from slotlock.cli.backends import CommandError
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.indexes.index import IndexConflictError
from slotlock.infrastructure.mongo.repositories import repositories_on


async def migrate(settings: Settings, deadline_s: float) -> str:
    """Build what is missing, and return what was built.

    Raises: CommandError if an index cannot be built, and PyMongoError, also after the deadline.
    """
    logging.config.dictConfig(logging_config(settings.log_format, settings.log_level))
    client, database = connect(settings.mongo_url or "")
    try:
        built = await repositories_on(database).indexes.build_missing(deadline_s)
    except (IndexConflictError, DuplicateKeyError) as error:
        raise CommandError(str(error)) from error
    finally:
        await client.close()
    return "\n".join([*(f"built {index.full_name}" for index in built), "all indexes exist"])
