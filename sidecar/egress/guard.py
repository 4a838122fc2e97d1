"""Which URLs and addresses may be fetched for a client. Pure: it resolves and connects nothing.

The node stands inside a network that its clients do not, so a client's URL may lead to the public internet only. The
URL is parsed once, by the library that also makes the request, so that no two parsers can disagree about its host.

Source of the address tables: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890), and the
clouds' documentation for metadata services at addresses that look public.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from yarl import URL

from sidecar.responses.errors import ApiError

Address = IPv4Address | IPv6Address

_CLOSED_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT, and a cloud's metadata
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's metadata
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments, and a cloud's metadata
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # automatic multicast tunnelling
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# All that is not global unicast is closed: loopback, link-local, unique local, IPv4-mapped, multicast, unspecified …
_GLOBAL_IPV6 = IPv6Network("2000::/3")
_CLOSED_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which embeds IPv4 addresses
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
# The one prefix through which a host without IPv4 reaches the IPv4 internet; the last 32 bits say whom.
_NAT64 = IPv6Network("64:ff9b::/96")

_MAX_URL_LENGTH = 8192
# A scheme, an authority without user information or backslash, and no control characters anywhere.
_HOST = r"(?:\[[0-9a-f:.]+\]|[^/?#@:\[\]\\\x00-\x20\x7f]+)"
_URL = re.compile(rf"https?://{_HOST}(?::[0-9]*)?(?:[/?#][^\x00-\x1f\x7f]*)?", re.IGNORECASE)
_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST_NAME = re.compile(rf"(?=.{{1,253}}$)(?:{_LABEL}\.)+{_LABEL}\.?")
# A last label like this makes resolvers read the whole name as a number (WHATWG URL, "ends in a number").
_NUMBER_AT_END = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?")


def is_public(address: Address) -> bool:
    """Whether ``address`` is one of the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _CLOSED_IPV4)
    if address.scope_id is not None:
        return False
    if address in _NAT64:
        return is_public(IPv4Address(address.packed[-4:]))
    return address in _GLOBAL_IPV6 and not any(address in network for network in _CLOSED_IPV6)


def check_url(text: str, *, allow_http: bool, ports: tuple[int, ...]) -> URL:
    """``text`` as a URL that may be fetched once its host's addresses have been checked.

    Names are in their IDNA form then. A host that is an address itself is written as an address is, not as a number.

    Raises:
        ApiError: ``invalid_request`` for what is no http(s) URL, ``egress_denied`` for one that is not allowed.
    """
    if len(text) > _MAX_URL_LENGTH:
        raise ApiError("invalid_request", f"An image's URL has more than {_MAX_URL_LENGTH} characters.")
    if not _URL.fullmatch(text):
        raise ApiError("invalid_request", "An image's URL is malformed, or holds a user name.")
    try:
        url = URL(text)
    except ValueError as error:
        raise ApiError("invalid_request", "An image's URL is malformed.") from error
    if url.scheme == "http" and not allow_http:
        raise _denied("Images are fetched over https only.")
    if url.port not in ports:
        raise _denied("Images are not fetched from this port.")
    if host_address(url) is None:
        _check_name(url.raw_host or "")
    return url


def host_address(url: URL) -> Address | None:
    """The address that the host of ``url`` is, ``None`` when it is a name."""
    try:
        return ip_address(url.raw_host or "")
    except ValueError:
        return None


def no_public_address() -> ApiError:
    """The error for a host that has none; it does not tell a closed address from a name that does not exist."""
    return _denied("An image's host has no public address.")


def _check_name(host: str) -> None:
    if _NUMBER_AT_END.fullmatch(host):
        raise _denied("An image's host is an address in an unusual notation.")
    if not _HOST_NAME.fullmatch(host):
        raise _denied("An image's host is not a full domain name.")


def _denied(message: str) -> ApiError:
    return ApiError("egress_denied", message)
