"""The GraphiQL page that development mode serves to browsers."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256

from starlette.responses import HTMLResponse

# The page loads React and GraphiQL from here; each file is pinned by its hash (`integrity`).
CDN = "https://unpkg.com"
# Says what is missing when a file fails, or is late because a firewall drops packets.
WATCH = """
      const notice = (text) => {
        const loading = document.getElementById("graphiql");
        if (loading && !window.started) loading.innerHTML = `<p style="margin: 2rem">${text}
          GraphiQL loads its files from unpkg.com, so it needs the internet.
          <a href="/">The start page</a> has examples for the terminal,
          and every GraphQL client works with this address.</p>`;
      };
      let failed = false;
      const fail = () => { failed = true; notice("GraphiQL could not be loaded."); };
      addEventListener("error", fail, true);
      setTimeout(() => failed || notice("GraphiQL is not loaded yet."), 8000);
    """


def graphiql_page() -> HTMLResponse:
    """Return the page with its own content security policy, which allows the CDN."""
    page, policy = _page()
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@cache
def _page() -> tuple[str, str]:
    # Only a server of development has the page.
    from strawberry.http.ides import get_graphql_ide_html

    page = _without_blocking_files(get_graphql_ide_html())
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = [f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'" for each in scripts]
    policy = (
        f"default-src 'none'; script-src {CDN} {' '.join(hashes)}; "
        f"style-src {CDN} 'unsafe-inline'; img-src data:; font-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page, policy


def _without_blocking_files(page: str) -> str:
    """Return the page so that a browser shows its body before the files of the CDN arrive."""
    styles = re.findall(r'<link\s+crossorigin\s+rel="stylesheet".*?/>', page, re.DOTALL)
    for style in styles:
        page = page.replace(style, "")
    page = page.replace("</body>", "".join(styles) + "</body>")
    page = re.sub(r"<script\s+crossorigin", "<script defer crossorigin", page)
    # Deferred files run before this event.
    start = 'addEventListener("DOMContentLoaded", () => {{{}window.started = true;\n}});'
    page = re.sub(
        r"<script>(.*?)</script>",
        lambda script: f"<script>{start.format(script[1])}</script>",
        page,
        count=1,
        flags=re.DOTALL,
    )
    return page.replace("<head>", f"<head><script>{WATCH}</script>", 1)
