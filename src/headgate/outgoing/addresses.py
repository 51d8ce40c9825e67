"""Public addresses, and the allowlist `outgoing.allow`.

`ipaddress.is_global` alone accepts multicast, relays, tunnels and IPv4 inside IPv6, and differs between Python
releases. So the non-public ranges are also listed in a table here, and both checks must pass.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from headgate.kit.call_errors import CallRefused
from headgate.kit.hosts import Address, Host, read_host
from headgate.settings.settings import PREFIX, BadSettings

Network = IPv4Network | IPv6Network

_TABLE = """
the address of a cloud's metadata service: 169.254.169.254 100.100.100.200 168.63.129.16 192.0.0.192
the address of a cloud's metadata service: fd00:ec2::254 fd20:ce::254
a loopback address: 127.0.0.0/8 ::1
a link-local address: 169.254.0.0/16 fe80::/10
a private address: 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10
an address behind a carrier's NAT: 100.64.0.0/10
a multicast address: 224.0.0.0/4 ff00::/8
an unspecified address: 0.0.0.0/8 ::
an address for documentation: 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20
an address for measurements: 198.18.0.0/15 2001:2::/48
a tunnel to another address: 2002::/16 2001::/32 192.88.99.0/24 64:ff9b:1::/48
a reserved address: 192.0.0.0/24 240.0.0.0/4 2001::/23
"""
_NOT_PUBLIC: tuple[tuple[str, Network], ...] = tuple(
    (words, ip_network(network))
    for words, _, networks in (line.partition(": ") for line in _TABLE.strip().splitlines())
    for network in networks.split()
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def meant(address: Address) -> Address:
    """The IPv4 address in an IPv6 address (mapped, or by NAT64); otherwise the address itself."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def fault(address: Address) -> str | None:
    """Why an address is not public, in words; None if it is."""
    address = meant(address)
    for words, network in _NOT_PUBLIC:
        if address in network:
            return words
    if isinstance(address, IPv6Address):
        if address not in _GLOBAL_UNICAST:
            return "a reserved address"
        if (int(address) >> 32) & 0xFDFFFFFF == 0x5EFE:  # ISATAP: an IPv4 address in the lower half
            return "a tunnel to another address"
    return None if address.is_global else "a reserved address"


@dataclass(frozen=True)
class Allowed:
    """The allowlist `outgoing.allow`."""

    names: frozenset[str]
    networks: tuple[Network, ...]

    @classmethod
    def of(cls, entries: Iterable[str]) -> "Allowed":
        """Parse the setting; BadSettings names an entry that can never match."""
        names, networks = set[str](), list[Network]()
        for entry in entries:
            try:
                result = _entry(entry.strip())
            except (ValueError, CallRefused):
                kinds = "a host name, an address or a network such as 10.1.0.0/16"
                raise BadSettings(f"outgoing.allow: {entry!r} must be {kinds}") from None
            if isinstance(result, str):
                names.add(result)
            else:
                networks.append(result)
        return cls(frozenset(names), tuple(networks))

    def permits(self, address: Address) -> bool:
        """Whether a call may use this address: it is public, or listed in either of its spellings."""
        return fault(address) is None or any(
            value in network for value in (address, meant(address)) for network in self.networks
        )


def _entry(text: str) -> str | Network:
    if "/" in text:
        return ip_network(text, strict=False)
    host = read_host(f"[{text}]" if ":" in text and not text.startswith("[") else text)
    return host if isinstance(host, str) else ip_network(host)


def refusal(host: Host, spelt: str | None = None) -> CallRefused:
    """Why a host is not called, and which setting would allow it, without revealing its addresses."""
    if isinstance(host, str):
        entry, reason = host, f"{host} leads to an address that is not public"
    else:
        entry = str(meant(host))
        same = spelt is None or spelt.strip("[]") in (entry, str(host))
        reason = f"{entry} is {fault(host)}" if same else f"{spelt} is {entry}, {fault(host)}"
    listed = json.dumps([entry])
    setting = f"outgoing.allow = {listed} ({PREFIX}OUTGOING__ALLOW='{listed}')"
    return CallRefused(f"{reason}. If calls may go there, an operator sets {setting}")
