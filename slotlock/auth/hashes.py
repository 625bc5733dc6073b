"""Random tokens of which only a hash is kept: who reads the database cannot use them."""

import hashlib


def hash_token(token: str) -> str:
    """The hash; a token is as hard to guess as it is to turn round, so it needs no salt."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
