"""Checks that nobody is signed out: not by a lost response, a failover or a wrong clock."""

from collections import defaultdict
from collections.abc import Sequence

from bench.faults.checker.report import Report
from bench.faults.history import REFRESH, Operation

# For so long after its first exchange, a refresh token returns the same successor again.
REFRESH_GRACE_S = 30.0


def check_sessions(operations: Sequence[Operation], report: Report) -> None:
    """Report tokens that were refused, though the session of the user lasts."""
    by_token: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.operation == REFRESH:
            by_token[str(operation.input["token"])].append(operation)
        if operation.error == "UNAUTHENTICATED":
            report.add("token refused", operation.user_id, [operation])
    report.counts["refresh tokens"] = len(by_token)
    for sent in by_token.values():
        _check_refresh_token(sent, report)


def _check_refresh_token(sent: Sequence[Operation], report: Report) -> None:
    until = sent[0].started_at + REFRESH_GRACE_S
    for operation in sent:
        if operation.finished_at is None or operation.finished_at > until:
            continue
        if operation.outcome and operation.outcome["__typename"] == "InvalidSession":
            report.add("signed out", operation.user_id, sent)
