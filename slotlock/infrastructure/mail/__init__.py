"""Mails: their texts, and the mail server that takes them."""
