"""Webhooks, as organizers set them up."""
