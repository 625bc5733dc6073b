"""CSV files, also of commands: RFC 4180 in UTF-8, with a mark by which Excel detects UTF-8."""

import csv
from collections.abc import AsyncIterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from slotlock.domain.reports.export_formats import CsvSeparator
from slotlock.domain.shared.formulas import escape_formula
from slotlock.graphql.times import format_time

if TYPE_CHECKING:
    from slotlock.auth.invitations import PasswordInvitation

BYTE_ORDER_MARK = "\ufeff"
INVITATION_COLUMNS = ("email", "name", "token", "expires_at", "username", "groups", "family_name")


def csv_header(names: Sequence[str], separator: CsvSeparator = CsvSeparator.COMMA) -> str:
    """Return the first line of a file, with the byte order mark."""
    return BYTE_ORDER_MARK + csv_line(names, separator)


def csv_line(cells: Sequence[str], separator: CsvSeparator = CsvSeparator.COMMA) -> str:
    """Return a line of escaped cells with its line end. No spreadsheet runs a formula in it."""
    line, character = StringIO(), separator.character
    writer = csv.writer(line, delimiter=character)
    writer.writerow([escape_formula(cell, character) for cell in cells])
    return line.getvalue()


async def invitation_csv_lines(
    invitations: AsyncIterator["PasswordInvitation"], separator: CsvSeparator, page: str = ""
) -> AsyncIterator[str]:
    """Yield a header and a CSV line for each invitation; formulas are escaped.

    With the address of a page, to whose end a token is added, the lines have links.
    """
    columns = [("link" if page and each == "token" else each) for each in INVITATION_COLUMNS]
    yield csv_header(columns, separator)
    async for invitation in invitations:
        expires_at = format_time(invitation.expires_at)
        user, link = invitation.user, page + invitation.token
        login = (user.email or "", user.name, link, expires_at, user.username or "")
        groups, family_name = ", ".join(user.groups), user.family_name or ""
        yield csv_line((*login, groups, family_name), separator)
