"""The GraphiQL page that development mode serves to browsers."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256

from starlette.responses import HTMLResponse
from strawberry.http.ides import get_graphql_ide_html

# The page loads React and GraphiQL from here; each file is pinned by its hash (`integrity`).
CDN = "https://unpkg.com"


def graphiql_page() -> HTMLResponse:
    """Return the page with its own content security policy, which allows the CDN."""
    page, policy = _page()
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@cache
def _page() -> tuple[str, str]:
    page = get_graphql_ide_html()
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'" for each in scripts]
    policy = (
        f"default-src 'none'; script-src {CDN} {' '.join(hashes)}; "
        f"style-src {CDN} 'unsafe-inline'; img-src data:; font-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page, policy
