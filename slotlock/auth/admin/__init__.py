"""Accounts that organizers, admins and operators administer."""
