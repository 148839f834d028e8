"""Who looks at the gallery: reviewers, an operator, one with codes, one with a passkey alone, and one who is new."""

from __future__ import annotations

from datetime import timedelta

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.webauthn.internal.auth import WebAuthn
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import Group, Permission, User
from django.http import HttpRequest
from django.test import Client

from approvals.models import Absence, SavedFilter
from runs.engine import clock
from tests.gallery.shown import Pages, Shown

PASSWORD = "correct horse battery staple"
SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"


def people() -> dict[str, User]:
    made = {name: _person(name, "pm") for name in ("pm", "mara", "tomas")}
    made["newcomer"] = _person("newcomer", "")
    made["ops"] = _person("ops", "ops", is_staff=True)
    made["chief"] = _person("chief", "", is_staff=True, is_superuser=True)
    coded = made["coded"] = _person("coded", "")
    hasher = PBKDF2PasswordHasher()  # as the server's process reads and leaves it, whatever this one has
    coded.password = hasher.encode(PASSWORD, hasher.salt())
    coded.save()
    TOTP.activate(coded, SECRET)
    RecoveryCodes.activate(coded)
    made["back"], made["keyed"] = _person("back", ""), _person("keyed", "")
    TOTP.activate(made["back"], SECRET)
    for name, alone in (("Office laptop", True), ("A key on the ring", False)):
        WebAuthn.add(made["keyed"], name, {"clientExtensionResults": {"credProps": {"rk": alone}}})
    ours = Permission.objects.filter(content_type__app_label__in=["runs", "approvals"])
    Group.objects.get(name="ops").permissions.set(ours)
    Group.objects.get_or_create(name="finance")
    return made


def own_pages(people: dict[str, User]) -> Pages:
    """Sign-in, one's account, notices and absence."""
    pm, tomas = people["pm"], people["tomas"]
    passkey = Authenticator.objects.filter(user=people["keyed"]).latest("pk").pk
    SavedFilter.keep(pm, "High risk today", "?risk=high")
    Absence.plan(tomas, deputy=pm, since=clock.now(), until=clock.now() + timedelta(days=3))
    password = (
        ("fill", "[name=username]", "coded"),
        ("fill", "[name=password]", PASSWORD),
        ("press", ".fields .button"),
        ("see", "[name=code]"),
    )
    wrong_code = (("fill", "[name=code]", "123456"), ("press", ".fields .button-primary"), ("see", ".error"))
    wrong_hours = (
        ("fill", "[name=quiet_from]", "22:00"),
        ("fill", "[name=quiet_until]", "07:00"),
        ("fill", "[name=zone]", "Europe/Nowhere"),
        ("press", ".own-acts .button"),
        ("see", ".error"),
    )
    wrong_person = (("fill", "[name=to]", "nobody"), ("fill", "[name=until]", "2020-01-01"))
    return {
        "notices": Shown("pm", "/notices/"),
        "notices-wrong": Shown("pm", "/notices/", wrong_hours),
        "away": Shown("pm", "/away/"),
        "away-wrong": Shown(
            "pm", "/away/", (*wrong_person, ("press", ".button-primary"), ("see", ".error, .banner"))
        ),
        "away-planned": Shown("tomas", "/away/"),
        "account": Shown("pm", "/account/"),
        "account-with-codes": Shown("coded", "/account/"),
        "account-password": Shown("pm", "/account/password/"),
        "account-confirm": Shown("newcomer", "/account/confirm/"),
        "account-passkeys": Shown("pm", "/account/passkeys/"),
        "account-passkey-new": Shown("pm", "/account/passkeys/new/"),
        "account-passkeys-kept": Shown("keyed", "/account/passkeys/"),
        "account-passkey-rename": Shown("keyed", f"/account/passkeys/{passkey}/"),
        "account-passkey-remove": Shown("keyed", f"/account/passkeys/{passkey}/remove/"),
        "account-no-password": Shown("keyed", "/account/password/none/"),
        "account-code": Shown("pm", "/account/code/"),
        "account-code-remove": Shown("coded", "/account/code/remove/"),
        "account-confirm-code": Shown("back", "/account/confirm/code/"),
        "account-spare-codes": Shown("coded", "/account/spare-codes/"),
        "account-spare-codes-new": Shown("coded", "/account/spare-codes/new/"),
        "sign-in": Shown("", "/login/"),
        "sign-in-wrong": Shown(
            "",
            "/login/",
            (
                ("fill", "[name=username]", "coded"),
                ("fill", "[name=password]", "wrong"),
                ("press", ".fields .button"),
                ("see", ".error"),
            ),
        ),
        "sign-in-code": Shown("", "/login/", password),
        "sign-in-code-wrong": Shown("", "/login/", password + wrong_code),
        "sign-in-forgotten": Shown("", "/login/forgotten/"),
        "sign-in-forgotten-sent": Shown("", "/login/forgotten/sent/"),
        "sign-in-link-used": Shown("", "/login/new-password/1-a-b/"),
        "sign-in-password-kept": Shown("", "/login/new-password/"),
        "sign-in-failed": Shown("", "/login/failed/"),
        "sign-in-cancelled": Shown("", "/login/cancelled/"),
        "sign-in-switched-off": Shown("", "/login/switched-off/"),
    }


def problem_pages() -> Pages:
    return {
        "error-400": Shown("", "/failing/400/"),
        "error-403": Shown("ops", "/admin/auth/user/"),
        "error-403-csrf": Shown("pm", "/failing/403-csrf/"),
        "error-404": Shown("pm", "/nowhere/"),
        "error-413": Shown(
            "",
            "/login/",
            (
                ("grow", "[name=username]", "4000000"),
                ("fill", "[name=password]", "x"),
                ("press", ".fields .button"),
                ("see", "main.empty"),
            ),
        ),
        "error-429": Shown("", "/failing/429/"),
        "error-500": Shown("", "/failing/500/"),
    }


def sessions(names: set[str]) -> dict[str, str]:
    """Person to session cookie; each but two has given their password just now."""
    found = {}
    for name in sorted(names - {""}):
        client, person = Client(), User.objects.get(username=name)
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
        if name not in ("newcomer", "back"):
            request = HttpRequest()
            request.session, request.user = client.session, person
            record_authentication(request, person, method="password", reauthenticated=True)
            request.session.save()
        found[name] = client.cookies[settings.SESSION_COOKIE_NAME].value
    return found


def _person(name: str, group: str, **more: bool) -> User:
    made = User.objects.create_user(name, f"{name}@example.com", **more, first_name=name.title())
    if name in ("newcomer", "pm"):
        made.set_password(PASSWORD)
        made.save()
    if group:
        made.groups.add(Group.objects.get_or_create(name=group)[0])
    return made
