"""Sign-in at a provider of the school (OpenID Connect)."""
