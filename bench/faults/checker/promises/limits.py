"""Checks the limits of campaigns: at no moment has a user more bookings than the limit."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby

from bench.faults.checker.report import Report
from bench.faults.history import Json


def check_limits(lines: Iterable[Json], report: Report) -> None:
    """Report each moment at which a user has more live bookings in a campaign than allowed.

    The change stream has the writes of all slots in one order. Those of one transaction, as of a
    booking that moves, have the same time and are one moment.
    """
    bookings_of: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    written = (line for line in lines if line.get("cluster_time") and line["document"])
    for _, moment in groupby(written, key=lambda line: line["cluster_time"]):
        changed: dict[str, Json] = {}
        for line in moment:
            terms = line["document"].get("campaign")
            if terms and terms["maxBookings"]:
                users = [str(each["user"]) for each in line["document"]["bookings"]]
                bookings_of[terms["id"]][line["id"]] = users
                changed[terms["id"]] = line["document"]
        for campaign_id, document in changed.items():
            _check_moment(bookings_of[campaign_id], document, report)


def _check_moment(users_by_slot: dict[str, list[str]], document: Json, report: Report) -> None:
    report.counts["moments of limits"] += 1
    limit, counts = document["campaign"]["maxBookings"], defaultdict[str, int](int)
    for users in users_by_slot.values():
        for user in users:
            counts[user] += 1
    for user in {str(each["user"]) for each in document["bookings"]}:
        if counts[user] > limit:
            description = f"{user} has {counts[user]} bookings of {limit}"
            report.add("limit exceeded", description, versions=[document])
