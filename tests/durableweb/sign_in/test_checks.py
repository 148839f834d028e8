"""Settings of sign-in and notices that would open a door are refused by name."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from durableweb.sign_in import checks

FINE = {"url": "https://id.example.com", "client": "durableweb", "secret": "x", "groups": [("a", "pm")]}


def ids(problems):
    return [problem.id for problem in problems]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"url": ""}, []),
        ({"url": "http://id.example.com"}, ["durableweb.E040"]),
        ({"url": "id.example.com"}, ["durableweb.E040"]),
        ({"url": "http://127.0.0.1:9000"}, []),
        ({"secret": ""}, ["durableweb.E041"]),
        ({"groups": []}, ["durableweb.E042"]),
        ({"groups": [], "anyone": True}, []),
    ],
)
def test_a_provider_is_https_complete_and_lets_somebody_in(settings, change, expected):
    settings.OIDC = settings.OIDC | FINE | change
    assert ids(checks.provider()) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", []),
        ("https://a.example", []),
        ("http://localhost:8000", []),
        ("http://a.example", ["durableweb.E043"]),
    ],
)
def test_links_lead_to_https(settings, url, expected):
    settings.DURABLEWEB = settings.DURABLEWEB | {"site_url": url}
    assert ids(checks.site_address()) == expected


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ("10.20.0.0/16", []),
        ("127.0.0.1/32", []),
        ("0.0.0.0/0", ["durableweb.E044"]),
        ("169.254.169.254/32", ["durableweb.E044"]),
        ("::/0", ["durableweb.E044"]),
        ("fe80::/64", ["durableweb.E044"]),
    ],
)
def test_private_networks_are_allowed_one_by_one(settings, network, expected):
    settings.DURABLEWEB = settings.DURABLEWEB | {"notice_networks": [ip_network(network)]}
    assert ids(checks.notice_networks()) == expected
