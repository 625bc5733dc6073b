"""slotlock: a time-slot reservation backend with live availability and no double bookings."""

__version__ = "0.1.0"
