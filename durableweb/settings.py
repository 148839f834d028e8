"""Settings of an installation: each comes from the environment (docs/settings.md), with production as default."""

from __future__ import annotations

from pathlib import Path

from csp.constants import NONCE, NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.templatetags.static import static

from durableweb import environment, shared_cache

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(environment.text("DURABLEWEB_HOME", str(ROOT / "var"))).expanduser().absolute()

DEBUG = environment.flag("DURABLEWEB_DEBUG")
TESTING = environment.flag("DURABLEWEB_TESTING")
HTTPS = environment.flag("DURABLEWEB_HTTPS", default=not (DEBUG or TESTING))

SECRET_KEY = environment.secret_key("DURABLEWEB_SECRET_KEY", kept_in=HOME / "secret-key", make=DEBUG)
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ALLOWED_HOSTS = environment.listed("DURABLEWEB_ALLOWED_HOSTS", default=LOOPBACK if DEBUG else ())
CSRF_TRUSTED_ORIGINS = environment.listed("DURABLEWEB_CSRF_ORIGINS")

REDIS_URL = environment.text("REDIS_URL")
DATABASES = {"default": environment.database("DATABASE_URL", sqlite=HOME / "durableweb.sqlite3")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
if TESTING and DATABASES["default"]["ENGINE"] == "durableweb.sqlite":
    # A file, not memory: tests use threads and forks, and other processes open the same rows.
    DATABASES["default"]["TEST"] = {"NAME": DATABASES["default"]["NAME"]}

# -- the engine, read through runs.conf ---------------------------------------------------------------------
_lease_seconds = environment.seconds("DURABLEWEB_LEASE_SECONDS", 60, least=1)
DURABLEWEB = {
    "home": HOME,
    "lease_seconds": _lease_seconds,
    "heartbeat_seconds": environment.seconds("DURABLEWEB_HEARTBEAT_SECONDS", _lease_seconds / 3, least=0.05),
    "workers": environment.whole("DURABLEWEB_WORKERS", 2, least=1),
    "shift_runs": environment.whole("DURABLEWEB_SHIFT_RUNS", 16, least=1),
    "shift_async_runs": environment.whole("DURABLEWEB_SHIFT_ASYNC_RUNS", 500, least=1),
    "grace_seconds": environment.seconds("DURABLEWEB_GRACE_SECONDS", 30, least=0),
    "undo_seconds": environment.seconds("DURABLEWEB_UNDO_SECONDS", 8, least=0),
    "archive_after_days": environment.whole("DURABLEWEB_ARCHIVE_AFTER_DAYS", 90, least=0),
    "blob_bytes": environment.whole("DURABLEWEB_BLOB_BYTES", 32 * 1024, least=256),
    "value_limit_bytes": environment.whole("DURABLEWEB_VALUE_LIMIT_BYTES", 8 * 1024 * 1024, least=1024),
    "tick_token": environment.text("DURABLEWEB_TICK_TOKEN"),
    "metrics_token": environment.text("DURABLEWEB_METRICS_TOKEN"),
    "secrets_dir": environment.text("DURABLEWEB_SECRETS_DIR"),
    "secrets_from": environment.text("DURABLEWEB_SECRETS_FROM"),
    "site_url": environment.text("DURABLEWEB_SITE_URL").rstrip("/"),
    "notice_networks": environment.networks("DURABLEWEB_NOTICE_NETWORKS"),
}

# A q2 message is only a bell; rows are the truth. So nothing is retried, timed out or scheduled by q2 itself
# (durableweb.checks refuses other values).
Q_CLUSTER: dict[str, object] = {
    "name": "durableweb",
    "label": "Bells",
    "workers": DURABLEWEB["workers"],
    "timeout": 86_400,
    "retry": 90_000,
    "max_attempts": 1,
    "ack_failures": True,
    "save_limit": -1,
    "scheduler": False,
    "catch_up": False,
    "poll": 0.1,
    "bulk": 1,
    **({"redis": REDIS_URL} if REDIS_URL else {"orm": "default"}),
}
CHANNEL_LAYERS: dict[str, dict[str, object]] = {
    "default": (
        {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
        if REDIS_URL
        else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    )
}

# -- Django -------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "durableweb",
    "approvals",
    "runs",
    "examples",
    *environment.apps("DURABLEWEB_APPS"),
    "unfold",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "durableweb.late_admin.LateAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "django_htmx",
    "django_q",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "durableweb.policy.ContentPolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "durableweb.caching.KeepNothingMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "runs.naming.FullNamesMiddleware",
    "durableweb.not_found.OwnNotFoundMiddleware",
]
ROOT_URLCONF = "durableweb.urls"
ASGI_APPLICATION = "durableweb.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "approvals.context.inbox",
            ]
        },
    }
]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]  # each by its own name; docs/look.md says how to add one
LOCALE_PATHS = [ROOT / "locale"]
FORMAT_MODULE_PATH = ["durableweb.formats"]
LANGUAGE_COOKIE_NAME = "language"  # a person's choice; without one the browser's
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = HOME / "static-root"
STATICFILES_DIRS = [ROOT / "static"]
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG or TESTING  # without collectstatic
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": HOME / "blobs", "file_permissions_mode": 0o600},
    },
    "staticfiles": {
        "BACKEND": (
            "django.contrib.staticfiles.storage.StaticFilesStorage"
            if DEBUG or TESTING
            else "durableweb.static_names.HashedNames"
        )
    },
}

DEFAULT_FROM_EMAIL = SERVER_EMAIL = environment.text("DURABLEWEB_FROM_EMAIL", "durableweb@localhost")
globals().update(environment.mail("DURABLEWEB_EMAIL_URL", folder=HOME / "mail"))

_accent = (  # of static/css/tokens.css, from light to dark
    (50, "97% 0.014 268"), (100, "94.6% 0.03 268"), (200, "90% 0.06 268"), (300, "82% 0.1 268"), (400, "74% 0.13 268"),
    (500, "65% 0.15 268"), (600, "48.5% 0.19 268"), (700, "43.5% 0.19 268"), (800, "39% 0.16 268"),
    (900, "34% 0.13 268"), (950, "26% 0.1 268"),
)  # fmt: skip
_base = (  # the greys, likewise
    (50, "97.7% 0.003 264"), (100, "95.7% 0.005 264"), (200, "91.8% 0.005 264"), (300, "84.5% 0.008 264"),
    (400, "73.5% 0.012 264"), (500, "53% 0.016 264"), (600, "48.5% 0.016 264"), (700, "37.2% 0.011 264"),
    (800, "29.2% 0.009 264"), (900, "20.3% 0.007 264"), (950, "16.8% 0.006 264"),
)  # fmt: skip
UNFOLD = {
    "SITE_TITLE": "durableweb",
    "SITE_HEADER": "durableweb",
    "SITE_ICON": lambda request: static("icon.svg"),
    "STYLES": [lambda request: static("css/admin.css")],
    "SCRIPTS": [lambda request: static("js/admin.js")],
    "COLORS": {
        name: {str(step): f"oklch({colour})" for step, colour in ramp}
        for name, ramp in (("primary", _accent), ("base", _base))
    },
}

# -- people and browsers ------------------------------------------------------------------------------------
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{rule}"}
    for rule in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# The default one counts sign-ins that fail, over all web processes: in Redis, or in a table that `migrate` makes
# (durableweb/shared_cache.py). Tests sign in without limit. Where it only saves work, each process remembers by itself.
CACHES: dict[str, dict[str, object]] = {
    "default": shared_cache.described(REDIS_URL),
    "process": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    },
}
if TESTING:
    CACHES = dict.fromkeys(CACHES, {"BACKEND": "django.core.cache.backends.dummy.DummyCache"})
OIDC = {
    "id": "sso",
    "url": environment.text("DURABLEWEB_OIDC_URL").rstrip("/"),
    "name": environment.text("DURABLEWEB_OIDC_NAME", "single sign-on"),
    "client": environment.text("DURABLEWEB_OIDC_CLIENT"),
    "secret": environment.text("DURABLEWEB_OIDC_SECRET"),
    "claim": environment.text("DURABLEWEB_OIDC_CLAIM", "groups"),
    "groups": environment.pairs("DURABLEWEB_OIDC_GROUPS"),
    "anyone": environment.flag("DURABLEWEB_OIDC_ANYONE"),
}
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "APPS": [
            {
                "provider_id": OIDC["id"],
                "name": OIDC["name"],
                "client_id": OIDC["client"],
                "secret": OIDC["secret"],
                "settings": {"server_url": OIDC["url"], "oauth_pkce_enabled": True},
            }
        ]
        if OIDC["url"]
        else []
    }
}
SOCIALACCOUNT_ADAPTER = "durableweb.sign_in.adapters.ProviderAdapter"
SOCIALACCOUNT_EMAIL_VERIFICATION = ACCOUNT_EMAIL_VERIFICATION = (
    "none"  # an administrator, or the provider, knows them
)
SOCIALACCOUNT_REAUTHENTICATION_REQUIRED = True  # an open browser connects nothing
ACCOUNT_ADAPTER = "durableweb.sign_in.adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "durableweb.sign_in.forms.SignInForm",
    "reset_password": "durableweb.sign_in.forms.ForgottenForm",
}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*"]
ACCOUNT_SESSION_REMEMBER = True  # as long as SESSION_COOKIE_AGE says
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # nobody is written to because somebody typed their address
ACCOUNT_REAUTHENTICATION_METHODS = ["password", "mfa"]
MFA_ADAPTER = "durableweb.sign_in.adapters.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_ISSUER = "durableweb"
MFA_TOTP_TOLERANCE = 1  # a code of half a minute ago, or of a clock that is ahead
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = DEBUG or TESTING  # http://localhost

SESSION_COOKIE_AGE = 3600 * environment.whole("DURABLEWEB_SESSION_HOURS", 12, least=1)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SESSION_COOKIE_HTTPONLY = True
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # HSTS for subdomains, and
    "security.W021",  # the browsers' preload list: both bind names that are not this site's
]
_policy = {
    "default-src": [SELF],
    "script-src": [SELF, NONCE],
    "style-src": [SELF, NONCE],
    "img-src": [SELF, "data:"],
    "connect-src": [SELF],
    "frame-ancestors": [NONE],
    "base-uri": [NONE],
    "form-action": [SELF],
    "object-src": [NONE],
}
CONTENT_SECURITY_POLICY = {"DIRECTIVES": _policy}
ADMIN_CONTENT_SECURITY_POLICY = _policy | {  # unfold's Alpine evaluates attributes and sets styles
    "script-src": [SELF, UNSAFE_EVAL],
    "style-src": [SELF, UNSAFE_INLINE],
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"()": "runs.secrets.LogFormatter", "fmt": "%(asctime)s %(levelname)s %(name)s: %(message)s"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "httpx": {"level": "WARNING"},  # it logs whole addresses
    },
}
