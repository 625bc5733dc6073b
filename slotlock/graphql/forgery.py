"""Which requests another site's page cannot make a browser send without asking first (CSRF).

A browser asks (a preflight, see CORS in the Fetch standard) before it sends what no form could.
"""

from starlette.datastructures import Headers

JSON = "application/json"
# Headers of which one that is not empty will do; the last two are what Apollo's clients send.
ASKED_FIRST = ("GraphQL-Require-Preflight", "Apollo-Require-Preflight", "X-Apollo-Operation-Name")


def is_json(headers: Headers) -> bool:
    """Whether the body is said to be JSON in UTF-8, neither compressed nor a form's."""
    content_type, *parameters = headers.get("content-type", "").lower().split(";")
    parted = (parameter.partition("=") for parameter in parameters)
    named = {name.strip(): value.strip(' "') for name, _, value in parted}
    return (
        content_type.strip() == JSON
        and named.get("charset", "utf-8") == "utf-8"
        and headers.get("content-encoding", "identity").lower() == "identity"
    )


def asked_first(headers: Headers) -> bool:
    """Whether no page of another site sent this request, or only one that may."""
    # Not any Authorization: a browser adds `Basic` by itself once a proxy has asked for it.
    bearer = headers.get("authorization", "").lower().startswith("bearer ")
    return bearer or is_json(headers) or any(headers.get(name) for name in ASKED_FIRST)
