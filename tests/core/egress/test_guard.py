"""The egress guard: what leads to the public internet, and what does not."""

from ipaddress import IPv6Address

import pytest

from sidecar.egress.guard import check_url, host_address, is_public
from sidecar.responses.errors import ApiError

PUBLIC = """
    1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.215.14 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
    168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0
    192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2001:4860:4860::8888 2606:4700::1111
    2a00:1450:4001::1 2001:200::1 2620:fe::fe 64:ff9b::8.8.8.8
"""

CLOSED = """
    0.0.0.0 0.1.2.3 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 127.0.0.1 127.1.2.3
    127.255.255.255 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.0 172.31.255.255 192.0.0.1
    192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1
    224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1
    ::ffff:8.8.8.8 ::ffff:0:8.8.8.8 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::8.8.8.8
    100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 2001:10::1 2002:7f00:1::1 2002:a00:1::1
    2002:808:808::1 3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 ff0e::1
"""


@pytest.mark.parametrize(
    ("address", "public"), [*((a, True) for a in PUBLIC.split()), *((a, False) for a in CLOSED.split())]
)
def test_an_address_is_public_or_closed(address: str, public: bool) -> None:
    host = f"[{address}]" if ":" in address else address
    literal = host_address(check_url(f"https://{host}/", allow_http=False, ports=(443,)))
    assert literal is not None
    assert is_public(literal) is public


@pytest.mark.parametrize("address", ["fe80::1%eth0", "2606:4700::1111%eth0"])
def test_an_address_on_an_interface_of_this_host_is_closed(address: str) -> None:
    assert not is_public(IPv6Address(address))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("https://example.com", "example.com", 443),
        ("https://example.com/cat.png?size=1&q=a%2Bb#top", "example.com", 443),
        ("HTTPS://EXAMPLE.COM/", "example.com", 443),
        ("https://example.com:443/", "example.com", 443),
        ("https://example.com:80/", "example.com", 80),
        ("http://example.com/", "example.com", 80),
        ("https://example.com./", "example.com.", 443),
        ("https://my_bucket.s3.example.com/a b.png", "my_bucket.s3.example.com", 443),
        ("https://bücher.example/", "xn--bcher-kva.example", 443),
        ("https://ⓔxample.com/", "example.com", 443),
        ("https://1.example/", "1.example", 443),
        ("https://example.com?@evil.example/", "example.com", 443),
        ("https://example.com#@evil.example/", "example.com", 443),
        ("https://8.8.8.8/", "8.8.8.8", 443),
        ("https://８.8.8.8/", "8.8.8.8", 443),
    ],
)
def test_a_url_that_may_be_fetched(text: str, host: str, port: int) -> None:
    url = check_url(text, allow_http=True, ports=(443, 80))
    assert (url.raw_host, url.port) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "http://example.com/",
        "https://example.com:8080/",
        "https://example.com:22/",
        "https://example.com:0/",
        "https://localhost/",
        "https://localhost./",
        "https://metadata/",
        "https://triton:443/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://0X7F.0.0.1/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://127.0.1/",
        "https://127.0.0.1./",
        "https://127.0.0.0x1/",
        "https://256.256.256.256/",
        "https://1.2.3.4.5/",
        "https://0x/",
        "https://%31%32%37.0.0.1/",
        "https://exam%70le.com/",
        "https://a..example/",
        "https://[::1::]/",
        "https://-a.example/",
        f"https://{'a' * 64}.example/",
        f"https://{'a.' * 126}example/",
    ],
)
def test_a_url_that_is_not_allowed(text: str) -> None:
    with pytest.raises(ApiError) as raised:
        check_url(text, allow_http=False, ports=(443,))
    assert raised.value.code == "egress_denied"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com",
        "//example.com/",
        "https:example.com",
        "https:/example.com",
        "https:///cat.png",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "data:image/png;base64,AA==",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://@example.com/",
        "https://example.com\\@evil.example/",
        "https:\\\\example.com/",
        "https://exam ple.com/",
        "https://exam\tple.com/",
        "https://example.com/\r\nHost: evil.example",
        "https://example.com/\x00",
        " https://example.com/",
        "https://example.com:99999/",
        "https://example.com:port/",
        "https://[::1/",
        "https://[::g]/",
        "https://[v1.x]/",
        "https://[example.com]/",
        "https://[fe80::1%25eth0]/",
        "https://[2606:4700::1111%eth0]/",
        "https://\u00ad.example/",
        "https://exam\u200bple.com/",
        "https://example.com/" + "a" * 8192,
    ],
)
def test_what_is_no_url(text: str) -> None:
    with pytest.raises(ApiError) as raised:
        check_url(text, allow_http=True, ports=(443, 80))
    assert raised.value.code == "invalid_request"


def test_no_error_quotes_the_url() -> None:
    for text in ("https://user:hunter2@example.com/", "http://hunter2.example/?hunter2", "https://hunter2/"):
        with pytest.raises(ApiError) as raised:
            check_url(text, allow_http=False, ports=(443,))
        assert "hunter2" not in raised.value.message
