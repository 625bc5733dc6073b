"""The GraphiQL page of development, which alone may load what it is made of."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256

from starlette.responses import HTMLResponse
from strawberry.http.ides import get_graphql_ide_html

# The page loads React and GraphiQL from here, each file pinned by its hash (`integrity`).
CDN = "https://unpkg.com"


def graphiql_page() -> HTMLResponse:
    """The page, with a policy of its own in place of the one of all other answers."""
    page, policy = _page()
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@cache
def _page() -> tuple[str, str]:
    page = get_graphql_ide_html()
    inline = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'" for each in inline]
    policy = (
        f"default-src 'none'; script-src {CDN} {' '.join(hashes)}; "
        f"style-src {CDN} 'unsafe-inline'; img-src data:; font-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page, policy
