"""A receiver of webhooks: it accepts what is signed, recent and new.

SLOTLOCK_WEBHOOK_SECRET=whsec_... python -m slotlock_example.webhooks 8090
"""

import base64
import hmac
import json
import os
import sys
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

TOLERANCE_S = 300
MAX_BODY_BYTES = 64 * 1024


def verify(secret: str, headers: Mapping[str, str], body: bytes) -> Any:
    """Return the message of a request. Raises ValueError if it is forged, altered or old."""
    message_id, timestamp = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(timestamp)) > TOLERANCE_S:
        raise ValueError("the message is too old")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    expected = f"v1,{base64.b64encode(digest).decode()}"
    # While the secret is rotated, there is one signature for each.
    signatures = headers["webhook-signature"].split()
    if not any(hmac.compare_digest(each.encode(), expected.encode()) for each in signatures):
        raise ValueError("no signature fits")
    return json.loads(body)


class Receiver(BaseHTTPRequestHandler):
    """Answers at once; whatever takes longer than seconds belongs into a queue."""

    # A real receiver stores the ids with what it makes of the messages.
    seen: set[str] = set()  # noqa: RUF012 - all requests share it

    def do_POST(self) -> None:
        """Take a message."""
        length = min(int(self.headers.get("content-length", "0")), MAX_BODY_BYTES)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            message = verify(
                os.environ["SLOTLOCK_WEBHOOK_SECRET"], headers, self.rfile.read(length)
            )
        except (KeyError, ValueError) as error:
            self.send_error(400, str(error))
            return
        # A message comes again if its response was lost.
        if headers["webhook-id"] not in self.seen:
            self.seen.add(headers["webhook-id"])
            print(message["type"], message["data"], flush=True)
        self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8090), Receiver)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
