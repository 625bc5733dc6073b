"""A check of the addresses of accounts: whether each still leads where it did."""

from slotlock.cli.doctor.finding import Finding, ok, warning
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.infrastructure.mail.addresses import with_ascii_domain
from slotlock.infrastructure.mongo.client import Database

# All others are their own domains in each version of IDNA.
INTERNATIONAL = {"$regex": "@.*([^ -~]|xn--)"}
MAX_SHOWN = 20


async def check_addresses(database: Database) -> Finding:
    """Compare the stored addresses with what is stored now, and where their mails went before.

    That was a domain of IDNA 2003, which knows neither a sharp s nor the sigma at the end of words.
    Raises: PyMongoError.
    """
    found = database["users"].find({"email": INTERNATIONAL}, {"_id": 0, "email": 1})
    stored = [document["email"] async for document in found.sort("email")]
    taken = set(stored)
    problems = [problem for each in stored if (problem := _problem(each, taken))]
    if not problems:
        return ok("addresses", "each one of an account means what it did")
    more = f", and {len(problems) - MAX_SHOWN} more" if len(problems) > MAX_SHOWN else ""
    advice = "correct them on the board, under Users; ask their users first"
    return warning("addresses", "; ".join(problems[:MAX_SHOWN]) + more, advice)


def _problem(stored: str, taken: set[str]) -> str | None:
    normalized = normalize_email(stored)
    if normalized is None:
        return f"{stored} is invalid"
    if normalized != stored:
        owner = ", which another account has" if normalized in taken else ""
        return f"{stored} is read as {normalized}{owner}"
    domain = stored.rpartition("@")[2]
    try:
        before = domain.encode("idna").decode()
    except UnicodeError:
        before = domain
    now = with_ascii_domain(stored).rpartition("@")[2]
    return None if now == before else f"mails to {stored} went to {before}, and go to {now}"
