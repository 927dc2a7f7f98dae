from ipaddress import ip_network

import pytest

from rota.limits.client import client_ip

TRUSTED = tuple(map(ip_network, ("10.0.0.0/8", "192.0.2.7/32", "fd00::/8")))


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        pytest.param("198.51.100.1", None, "198.51.100.1", id="no header"),
        pytest.param("198.51.100.1", "203.0.113.9", "198.51.100.1", id="an untrusted peer"),
        pytest.param("10.0.0.1", None, "10.0.0.1", id="a request from the proxy itself"),
        pytest.param("10.0.0.1", "", "10.0.0.1", id="an empty header"),
        pytest.param("10.0.0.1", "203.0.113.9", "203.0.113.9", id="a proxy forwards"),
        pytest.param("10.0.0.1", "1.1.1.1, 203.0.113.9", "203.0.113.9", id="forged by a client"),
        pytest.param("10.0.0.1", "1.1.1.1, 203.0.113.9, 10.2.3.4", "203.0.113.9", id="2 proxies"),
        pytest.param("10.0.0.1", "203.0.113.9,192.0.2.7,10.2.3.4", "203.0.113.9", id="3 proxies"),
        pytest.param("10.0.0.1", "10.3.3.3, 10.2.2.2", "10.3.3.3", id="only proxies"),
        pytest.param("10.0.0.1", "203.0.113.9, junk", "10.0.0.1", id="invalid text"),
        pytest.param("10.0.0.1", "203.0.113.9,,10.2.2.2", "10.2.2.2", id="an empty item"),
        pytest.param("10.0.0.1", "1.1.1.1, unknown", "10.0.0.1", id="a hidden client"),
        pytest.param("10.0.0.1", "203.0.113.9:4711", "203.0.113.9", id="a port"),
        pytest.param("10.0.0.1", "203.0.113.999", "10.0.0.1", id="an invalid address"),
        pytest.param("10.0.0.1", "[2001:db8:1:2:3::4]:443", "2001:db8:1:2::/64", id="brackets"),
        pytest.param("10.0.0.1", "[2001:db8:1:2:3::4]", "2001:db8:1:2::/64", id="brackets only"),
        pytest.param("10.0.0.1", "2001:db8:1:2:ffff::", "2001:db8:1:2::/64", id="the same /64"),
        pytest.param("10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9", id="IPv4 inside IPv6"),
        pytest.param("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9", id="a mapped proxy"),
        pytest.param("fd00::1", "203.0.113.9", "203.0.113.9", id="an IPv6 proxy"),
        pytest.param("fe80::1%eth0", None, "fe80::/64", id="a zone"),
        pytest.param(None, "203.0.113.9", "unknown", id="no peer"),
        pytest.param("", "203.0.113.9", "unknown", id="a Unix socket"),
        pytest.param("/run/rota.sock", "203.0.113.9", "unknown", id="a Unix socket with a path"),
    ],
)
def test_the_client_is_the_nearest_address_that_is_not_a_trusted_proxy(
    peer: str | None, forwarded_for: str | None, client: str
) -> None:
    assert client_ip(peer, forwarded_for, TRUSTED) == client


def test_the_header_is_ignored_without_trusted_proxies() -> None:
    assert {client_ip("198.51.100.1", f"10.0.0.{i}", ()) for i in range(50)} == {"198.51.100.1"}
