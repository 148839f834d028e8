"""No notice is a way inside: each connection is looked at, whatever name or redirect led to it."""

from __future__ import annotations

import os
import socket
import subprocess
from ipaddress import ip_network

import httpx
import pytest

from approvals.models import Notice, Target
from approvals.notices import channels
from approvals.notices.guard import NotAllowedThere, is_allowed, outside_only
from tests.approvals.cases import ask
from tests.approvals.notice_server import Receiver, dripping, receiving, target
from tests.runs.driving import do_due

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def on(settings):
    settings.DURABLEWEB = settings.DURABLEWEB | {
        "site_url": "https://approvals.example",
        "notice_networks": [],
    }


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1",
        "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1",
        "::ffff:127.0.0.1", "::ffff:a00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "localhost", "example.com", "",
        "2130706433", "::127.0.0.1", "::a00:1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "feff::1",
    ],
)  # fmt: skip
def test_what_is_inside_is_no_place_for_notices(address):
    assert not is_allowed(address, [])


@pytest.mark.parametrize(
    "address",
    [
        "93.184.215.14",
        "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
        "64:ff9b::5db8:d70e",
        "64:ff9a::1",
        "fe00::1",
    ],
)
def test_what_is_public_is(address):
    assert is_allowed(address, [])


def test_a_network_is_allowed_by_name_alone():
    networks = [ip_network("10.20.0.0/16"), ip_network("fd12::/32"), ip_network("::1/128")]
    assert is_allowed("10.20.3.4", networks) and is_allowed("::ffff:10.20.3.4", networks)
    assert is_allowed("fd12::1", networks) and is_allowed("::1", networks)
    assert not is_allowed("10.21.3.4", networks) and not is_allowed("169.254.169.254", networks)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"])
@pytest.mark.parametrize(("scheme", "channel"), [("http", "webhook"), ("json", "chat")])
def test_loopback_by_any_name_gets_nothing(ada, host, scheme, channel):
    with receiving(Receiver()) as receiver:
        hook = target(f"{scheme}://{host}:{receiver.port}/room", channel)
        ask()
        do_due()
    assert receiver.got == []
    notice = Notice.objects.get(target=hook)
    assert notice.status in ("failed", "waiting") and notice.error
    hook.refresh_from_db()
    assert hook.failing_since is not None


@pytest.mark.parametrize(("scheme", "channel"), [("http", "webhook"), ("json", "chat")])
def test_a_name_that_was_public_when_it_was_set_up_and_leads_inside_now_gets_nothing(
    ada, monkeypatch, scheme, channel
):
    """DNS rebinding: whoever holds the name answers otherwise each time."""
    real, asked = socket.getaddrinfo, []

    def rebinding(host, port, *rest, **more):
        if host != "rebind.example":
            return real(host, port, *rest, **more)
        asked.append(host)
        return real("127.0.0.1", port, *rest, **more)

    with receiving(Receiver()) as receiver:
        hook = target(f"{scheme}://rebind.example:{receiver.port}/room", channel)
        monkeypatch.setattr(socket, "getaddrinfo", rebinding)
        ask()
        do_due()
    assert asked and receiver.got == []
    notice = Notice.objects.get(target=hook)
    assert notice.status == "failed" and "127.0.0.1 is no public address" in notice.error


@pytest.mark.parametrize(
    ("scheme", "channel", "query"), [("http", "webhook", ""), ("json", "chat", "?redirect=yes")]
)
def test_a_receiver_that_is_allowed_leads_nowhere_inside(ada, settings, scheme, channel, query):
    """The first address is allowed by the setting; where it redirects to is not."""
    settings.DURABLEWEB = settings.DURABLEWEB | {"notice_networks": [ip_network("127.0.0.1/32")]}
    with receiving(Receiver()) as inside:
        elsewhere = inside.url.replace("127.0.0.1", "127.0.0.2")
        with receiving(Receiver((307, elsewhere))) as allowed:
            target(f"{scheme}://127.0.0.1:{allowed.port}/room{query}", channel)
            ask()
            do_due()
    assert len(allowed.got) == 1 and inside.got == []
    assert "127.0.0.2 is no public address" in Notice.objects.get(target__isnull=False).error


def test_a_name_in_the_environment_leads_no_notice_through_a_proxy(ada, settings, monkeypatch):
    with receiving(Receiver()) as proxy:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        target("http://hooks.example/x", "webhook")
        ask()
        do_due()
    assert proxy.got == []


def test_neither_programs_nor_other_sockets_are_a_way_around():
    with socket.socket(socket.AF_UNIX) as local, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        for begin in (
            lambda: subprocess.run(["true"]),
            lambda: os.system("true"),
            lambda: os.posix_spawn("/bin/true", ["true"], {}),
            os.fork,
            lambda: local.connect("/dev/log"),
            lambda: datagrams.sendto(b"x", ("127.0.0.1", 9)),
            lambda: datagrams.connect(("127.0.0.1", 9)),
        ):
            with outside_only(60), pytest.raises(NotAllowedThere):
                begin()


def test_outside_of_it_everything_is_as_before():
    with receiving(Receiver()) as receiver:
        with outside_only(60), pytest.raises(httpx.HTTPError):
            httpx.post(receiver.url)
        assert httpx.post(receiver.url).status_code == 200


@pytest.mark.parametrize(("scheme", "channel"), [("http", "webhook"), ("json", "chat")])
def test_an_answer_that_drips_holds_no_sender(ada, settings, monkeypatch, scheme, channel):
    """Each wait is short, and there is no end of them: the attempt as a whole has a limit."""
    settings.DURABLEWEB = settings.DURABLEWEB | {"notice_networks": [ip_network("127.0.0.1/32")]}
    monkeypatch.setattr(channels, "LONGEST_SECONDS", 0.5)
    with dripping() as (port, left):
        target(f"{scheme}://127.0.0.1:{port}/room", channel)
        ask()
        do_due()
        assert left.wait(60), "it was listened to until the end"
    notice = Notice.objects.get(target__isnull=False)
    assert (notice.status, notice.error) == ("waiting", "no whole answer within 0.5 s")


def test_nothing_more_is_begun_once_the_time_is_over(settings):
    settings.DURABLEWEB = settings.DURABLEWEB | {"notice_networks": [ip_network("127.0.0.1/32")]}
    with receiving(Receiver()) as receiver, dripping() as (port, _left), outside_only(0.5):
        with pytest.raises(httpx.HTTPError):
            httpx.post(f"http://127.0.0.1:{port}")
        with pytest.raises(httpx.HTTPError):
            httpx.post(receiver.url)
    assert receiver.got == []


# -- the admin site ------------------------------------------------------------------------------------------

FORM = {"name": "room", "graph": "", "reviewer": "", "occasions": ["asked"], "is_on": "on", "key_number": "1"}


@pytest.mark.parametrize(
    ("channel", "url", "is_taken"),
    [
        ("webhook", "https://hooks.example/x", True),
        ("webhook", "http://hooks.example/x", False),
        ("webhook", "https://127.0.0.1/x", False),
        ("webhook", "https://[::1]/x", False),
        ("webhook", "https://localhost/x", False),
        ("webhook", "https://user:pw@hooks.example/x", False),
        ("webhook", "file:///etc/passwd", False),
        ("webhook", "https://①②⑦.0.0.2/x", False),
        ("webhook", "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/x", False),
        ("webhook", "https://bücher.example/x", True),
        ("webhook", "", False),
        ("chat", "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/", True),
        ("chat", "nonsense", False),
    ],
)
def test_staff_set_up_targets_and_mistakes_are_told(admin_client, channel, url, is_taken):
    answer = admin_client.post("/admin/approvals/target/add/", FORM | {"channel": channel, "url": url})
    assert (answer.status_code == 302) is is_taken
    assert Target.objects.exists() is is_taken


def test_only_who_may_change_a_target_sees_its_key_and_nobody_its_address(admin_client, client, olga):
    from django.contrib.auth.models import Permission

    hook = target("https://hooks.example/services/verysecret", "webhook")
    path = f"/admin/approvals/target/{hook.pk}/change/"
    page = admin_client.get(path).content.decode()
    assert hook.signing_key in page and "verysecret" not in page and "https://hooks.example/…" in page
    client.force_login(olga)
    assert client.get(path).status_code == 403
    olga.user_permissions.add(Permission.objects.get(codename="view_target"))
    seen = client.get(path).content.decode()
    assert hook.name in seen and hook.signing_key not in seen and "verysecret" not in seen
    kept = admin_client.post(path, FORM | {"channel": "webhook", "url": ""})
    assert kept.status_code == 302
    hook.refresh_from_db()
    assert hook.url.endswith("verysecret") and hook.occasions == ["asked"]
