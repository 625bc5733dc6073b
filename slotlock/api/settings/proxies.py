"""Which proxies are believed when they tell whom they ask for."""

from collections.abc import Sequence
from ipaddress import IPv4Network, ip_network


def validate_network(text: str) -> str | None:
    """What is wrong with an address or a network (CIDR), or None."""
    try:
        ip_network(text)
    except ValueError:
        return f"{text!r} is not like 10.0.0.7, 10.0.0.0/8 or fd00::/8"
    return None


def trusted_networks(networks: Sequence[str]) -> list[str]:
    """The networks as a socket shows them: one that speaks both writes IPv4 as IPv6, too."""
    shown = []
    for network in map(ip_network, networks):
        shown.append(str(network))
        if isinstance(network, IPv4Network):
            shown.append(f"::ffff:{network.network_address}/{96 + network.prefixlen}")
    return shown
