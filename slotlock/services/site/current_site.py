"""The site as it is now: what the school set on the board, or else what the settings say."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.site.site import SiteSaved, SiteValues, UpdateSiteOutcome, checked_changes
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.site.site_repository import SiteRepository

# The board tells admins that others see a change within a minute; caches have the page for 30 s.
READ_AGAIN_AFTER = timedelta(seconds=10)
# A page does not wait longer for a database that does not respond.
PATIENCE_S = 1.0

log = logging.getLogger("slotlock.site")


class CurrentSite:
    """The values of the site, which a process reads again at most every ten seconds."""

    def __init__(
        self, repository: SiteRepository, defaults: SiteValues, now: Callable[[], datetime]
    ) -> None:
        self.defaults = defaults
        self._repository = repository
        self._now = now
        self._own = SiteValues()
        self._read_at: datetime | None = None
        self._reading: asyncio.Task[None] | None = None

    async def load(self) -> SiteValues:
        """Return the values: those of before, if the database does not respond."""
        now = self._now()
        if self._read_at is None or not self._read_at <= now < self._read_at + READ_AGAIN_AFTER:
            self._read_at = now
            self._reading = asyncio.create_task(self._read(now))
        if self._reading is not None:
            await asyncio.shield(self._reading)
        return self._own.over(self.defaults)

    async def save(self, changes: Mapping[str, str], admin_id: UserId) -> SiteSaved:
        """Store changed values, and use them from now on. Raises: PyMongoError."""
        self._own = await self._repository.update(changes, admin_id, self._now())
        self._read_at = self._now()
        return SiteSaved(self._own, self.defaults)

    async def _read(self, at: datetime) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                own = await self._repository.find()
            if self._read_at is at:  # this process has stored nothing meanwhile
                self._own = own
        except Exception as error:  # the next read may succeed
            is_outage = isinstance(error, TimeoutError) or is_unavailable(error)
            log.warning("could not read the site", exc_info=None if is_outage else error)
        finally:
            self._reading = None


async def update(
    site: CurrentSite, changes: Mapping[str, str], admin_id: UserId
) -> UpdateSiteOutcome:
    """Change values of the site by attribute; an empty text leaves one to the settings."""
    checked = checked_changes(changes)
    return checked if isinstance(checked, InvalidInput) else await site.save(checked, admin_id)
