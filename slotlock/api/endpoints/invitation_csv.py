"""The invitations of users as CSV, for an endpoint and for a command."""

from collections.abc import AsyncIterator

from slotlock.api.endpoints.csv_lines import csv_header, csv_line
from slotlock.auth.invitations import PasswordInvitation
from slotlock.domain.reports.exports import CsvSeparator
from slotlock.graphql.times import format_time

INVITATION_COLUMNS = ("email", "name", "token", "expires_at")


async def invitation_csv_lines(
    invitations: AsyncIterator[PasswordInvitation], separator: CsvSeparator
) -> AsyncIterator[str]:
    """Yield a header and a CSV line for each invitation; formulas are escaped."""
    yield csv_header(INVITATION_COLUMNS, separator)
    async for invitation in invitations:
        expires_at = format_time(invitation.expires_at)
        cells = (invitation.email, invitation.name, invitation.token, expires_at)
        yield csv_line(cells, separator)
