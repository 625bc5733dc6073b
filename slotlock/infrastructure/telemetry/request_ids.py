"""Ids of requests: those that clients or proxies send, or short ones that are unique enough."""

import os
import re
import secrets
from itertools import count

HEADER = "x-request-id"
MAX_LENGTH = 128
# The characters of usual ids. Others could forge log lines, or make an id an email address.
_VALID = re.compile(rf"[A-Za-z0-9._~:/+=-]{{1,{MAX_LENGTH}}}", re.ASCII)

_numbers = count(1)
_process = ""


def _choose_process_id() -> None:
    global _process
    _process = secrets.token_hex(4)


_choose_process_id()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_choose_process_id)


def request_id(sent: str | None) -> str:
    """Return the id that a client sent, or a new one if it sent none or an invalid one."""
    if sent is not None and _VALID.fullmatch(sent):
        return sent
    # A random number for each request would cost more than its other checks of headers together.
    return f"{_process}-{next(_numbers):x}"


def operation_request_id(connection_id: str, operation_id: str) -> str:
    """Return the id of an operation on a socket, whose client chose `operation_id`."""
    return f"{connection_id}/{request_id(operation_id)}"
