"""The site as it is now: what the school set on the board, or else what the settings say."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.site.logo import Logo, read_logo
from slotlock.domain.site.site import SiteSaved, SiteValues, UpdateSiteOutcome, checked_changes
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.site.site_repository import SiteRepository

# The board tells admins that others see a change within a minute; caches have the page for 30 s.
READ_AGAIN_AFTER = timedelta(seconds=10)
# Only requests for a logo that this process does not have read it.
READ_LOGO_AGAIN_AFTER = timedelta(seconds=1)
# A page does not wait longer for a database that does not respond.
PATIENCE_S = 1.0

Value = TypeVar("Value")
log = logging.getLogger("slotlock.site")


class SharedRead(Generic[Value]):
    """A value that is read for all who ask at once, and again only after some time."""

    def __init__(
        self,
        read: Callable[[], Awaitable[Value]],
        value: Value,
        every: timedelta,
        now: Callable[[], datetime],
    ) -> None:
        self.value = value
        self._read = read
        self._every = every
        self._now = now
        self._read_at: datetime | None = None
        self._reading: asyncio.Task[None] | None = None

    async def load(self) -> Value:
        """Return the value: that of before, if the database does not respond."""
        now = self._now()
        if self._read_at is None or not self._read_at <= now < self._read_at + self._every:
            self._read_at = now
            self._reading = asyncio.create_task(self._read_once(now))
        if self._reading is not None:
            await asyncio.shield(self._reading)
        return self.value

    def set(self, value: Value) -> None:
        """Use a value that this process has just stored."""
        self.value, self._read_at = value, self._now()

    async def _read_once(self, at: datetime) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                value = await self._read()
            if self._read_at is at:  # this process has stored nothing meanwhile
                self.value = value
        except Exception as error:  # the next read may succeed
            is_outage = isinstance(error, TimeoutError) or is_unavailable(error)
            log.warning("could not read the site", exc_info=None if is_outage else error)
        finally:
            self._reading = None


class CurrentSite:
    """The values of the site, which a process reads again at most every ten seconds."""

    def __init__(
        self, repository: SiteRepository, defaults: SiteValues, now: Callable[[], datetime]
    ) -> None:
        self.defaults = defaults
        self._repository = repository
        self._now = now
        self._own = SharedRead(repository.find, SiteValues(), READ_AGAIN_AFTER, now)
        self._logo = SharedRead[Logo | None](repository.find_logo, None, READ_LOGO_AGAIN_AFTER, now)

    async def load(self) -> SiteValues:
        """Return the values that hold."""
        return (await self._own.load()).over(self.defaults)

    async def find_logo(self, digest: str) -> Logo | None:
        """Return the logo with this hash, if it is that of the site."""
        logo = self._logo.value
        if logo is None or logo.digest != digest:
            logo = await self._logo.load()
        return logo if logo is not None and logo.digest == digest else None

    async def save(
        self, changes: Mapping[str, str], admin_id: UserId, logo: Logo | None
    ) -> SiteSaved:
        """Store changed values, and use them from now on. Raises: PyMongoError."""
        own = await self._repository.update(changes, admin_id, self._now(), logo)
        self._own.set(own)
        return SiteSaved(own, self.defaults)


async def update(
    site: CurrentSite, changes: Mapping[str, str], admin_id: UserId, logo_text: str = ""
) -> UpdateSiteOutcome:
    """Change values of the site by attribute; an empty text leaves one to the settings.

    The logo is an image in Base64.
    """
    logo = read_logo(logo_text) if logo_text else None
    checked = checked_changes(changes, logo)
    if isinstance(checked, InvalidInput):
        return checked
    return await site.save(checked, admin_id, logo if isinstance(logo, Logo) else None)
