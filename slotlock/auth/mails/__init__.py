"""The mails that anybody can request."""
