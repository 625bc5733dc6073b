"""The proxies whose `X-Forwarded-For` the server trusts."""

from collections.abc import Sequence
from ipaddress import IPv4Network, ip_network


def validate_network(text: str) -> str | None:
    """Describe what is wrong with an address or a network (CIDR), or return None."""
    try:
        ip_network(text)
    except ValueError:
        return f"{text!r} is not like 10.0.0.7, 10.0.0.0/8 or fd00::/8"
    return None


def trusted_networks(networks: Sequence[str]) -> list[str]:
    """Return the networks in the forms in which sockets show their peers.

    A socket for both versions shows an IPv4 address as IPv6.
    """
    forms = []
    for network in map(ip_network, networks):
        forms.append(str(network))
        if isinstance(network, IPv4Network):
            forms.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return forms
