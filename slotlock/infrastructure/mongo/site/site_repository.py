"""Stores what the school set itself of the site.

site: {_id: "site", name?, color?, logoUrl?, imprintUrl?, privacyUrl?, locale?, timeZone?,
       mailClosing?, formOfAddress?}
site: {_id: "logo", content: bytes, mediaType}
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from slotlock.domain.audit.audit_notes import note_site_change
from slotlock.domain.site.logo import Logo
from slotlock.domain.site.site import SITE_FIELDS, SiteValues
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.audit.audit_note_repository import insert_notes
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.transactions import in_transaction

STORED_NAMES = {name: stored_name for stored_name, name in SITE_FIELDS.items()}
ONE, LOGO = {"_id": "site"}, {"_id": "logo"}


class SiteRepository:
    """Stores the site's own values, each change with its audit note."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._site = database["site"]

    async def find(self) -> SiteValues:
        """Return the values that the school set."""
        return _to_values(await self._site.find_one(ONE))

    async def find_logo(self) -> Logo | None:
        """Return the logo that the school set last, if it did."""
        found = await self._site.find_one(LOGO)
        return None if found is None else Logo(bytes(found["content"]), found["mediaType"])

    async def update(
        self, changes: Mapping[str, str], by: UserId, now: datetime, logo: Logo | None = None
    ) -> SiteValues:
        """Store changed values by attribute, of which empty ones end, and return all."""
        if not changes:  # MongoDB rejects an empty update
            return await self.find()
        names = {STORED_NAMES[name]: text for name, text in changes.items()}
        update = {
            "$set": {name: text for name, text in names.items() if text},
            "$unset": {name: "" for name, text in names.items() if not text},
        }

        async def write(session: AsyncClientSession) -> SiteValues:
            found = await self._site.find_one_and_update(
                ONE,
                {key: part for key, part in update.items() if part},
                upsert=True,
                session=session,
            )
            if logo is not None:
                image = {"content": logo.content, "mediaType": logo.media_type}
                await self._site.replace_one(LOGO, image, upsert=True, session=session)
            before = _to_values(found)
            after = replace(before, **changes)
            await insert_notes(self._database, [note_site_change(before, after, by, now)], session)
            return after

        try:
            return await in_transaction(self._database, write)
        except DuplicateKeyError:  # somebody else set the first values at the same time
            return await in_transaction(self._database, write)


def _to_values(document: Document | None) -> SiteValues:
    stored = document or {}
    return SiteValues(**{name: stored.get(key, "") for key, name in SITE_FIELDS.items()})
