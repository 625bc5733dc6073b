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
# A program builds links of its own of the tokens; for organizers, and operators, there are links.
INVITATION_COLUMNS = (
    *("email", "name", "token", "expires_at"),
    *("username", "groups", "link", "family_name"),
)
PRINTED_COLUMNS = ("email", "name", "link", "expires_at", "username", "groups", "family_name")
INVITATION_VIEW = "#/invitation/"


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
    invitations: AsyncIterator["PasswordInvitation"],
    separator: CsvSeparator,
    page: str | None,
    columns: Sequence[str] = INVITATION_COLUMNS,
) -> AsyncIterator[str]:
    """Yield a header and a CSV line for each invitation; formulas are escaped.

    A link is the address of a page with a token at its end. Without a page, there are none.
    """
    yield csv_header(columns, separator)
    async for invitation in invitations:
        user, token = invitation.user, invitation.token
        cells = {
            "email": user.email or "",
            "name": user.name,
            "token": token,
            "expires_at": format_time(invitation.expires_at),
            "username": user.username or "",
            "groups": ", ".join(invitation.groups),
            "link": page + token if page and token else "",
            "family_name": user.family_name or "",
        }
        yield csv_line([cells[column] for column in columns], separator)
