"""A provider of identities, as a process of its own: allauth's, over real HTTP on loopback.

    python -m tests.durableweb.sign_in.provider FOLDER PORT REDIRECT

The people are ada (approvers), pm (approvers, called as a group is) and eve (of no group that we admit); the password
is the name. What anybody last did to prove who they are is in `auth_time`, unless FOLDER holds a file `forgets`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

CLIENT, SECRET = "durableweb", "only for tests: 8d1f"
PEOPLE = {"ada": ["approvers", "staff"], "pm": ["approvers"], "eve": ["canteen"], "bob": ["platform"]}


def configure(folder: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from django.conf import settings

    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    settings.configure(
        SECRET_KEY="only for tests",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        DATABASES={
            "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "provider.sqlite3")}
        },
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "django.contrib.messages",
            "allauth",
            "allauth.account",
            "allauth.idp.oidc",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
            "allauth.account.middleware.AccountMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
        ACCOUNT_RATE_LIMITS=False,
        ACCOUNT_EMAIL_VERIFICATION="none",
        SESSION_COOKIE_NAME="provider",
        LOGIN_REDIRECT_URL="/",
        IDP_OIDC_PRIVATE_KEY=key.decode(),
        IDP_OIDC_ADAPTER=f"{__name__}.Adapter",
        IDP_OIDC_RATE_LIMITS=False,
    )


def people(redirect: str) -> None:
    from allauth.account.models import EmailAddress
    from allauth.idp.oidc.models import Client
    from django.contrib.auth.models import User
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    for name in PEOPLE:
        user = User.objects.create_user(
            name, f"{name}@example.com", name, first_name=name.title(), last_name="Obi"
        )
        EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    client = Client(id=CLIENT, name="durableweb", scopes="openid\nprofile\nemail", skip_consent=True)
    client.set_secret(SECRET)
    client.set_redirect_uris([redirect])
    client.save()


def main() -> None:
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    import django

    folder, port, redirect = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    configure(folder)
    django.setup()

    from allauth.account.signals import authentication_step_completed
    from allauth.idp.oidc.adapter import DefaultOIDCAdapter
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.urls import include, path

    proved: dict[int, float] = {}
    authentication_step_completed.connect(
        lambda user, **_more: proved.update({user.pk: time.time()}), weak=False, dispatch_uid="proved"
    )

    class Adapter(DefaultOIDCAdapter):
        def get_claims(self, purpose, user, client, scopes, email=None, **more):
            said = super().get_claims(purpose, user, client, scopes, email, **more)
            said["groups"] = PEOPLE[user.username]
            if purpose == "id_token" and user.pk in proved and not (folder / "forgets").exists():
                said["auth_time"] = int(proved[user.pk])
            return said

    globals()["Adapter"] = Adapter  # both are found by the name of this module
    globals()["urlpatterns"] = [
        path("", lambda request: HttpResponse("signed in")),
        path("accounts/", include("allauth.account.urls")),
        path("", include("allauth.idp.urls")),
    ]

    people(redirect)

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_given: object) -> None:
            pass

    with make_server("127.0.0.1", port, get_wsgi_application(), handler_class=Quiet) as server:
        (folder / "ready").touch()
        server.serve_forever()


if __name__ == "__main__":
    main()
