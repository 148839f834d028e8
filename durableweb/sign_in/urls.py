"""allauth's pages that this site offers, each by name; what is not listed (such as to sign up) does not exist."""

from __future__ import annotations

from allauth.account import views as account
from allauth.mfa.base import views as factors
from allauth.mfa.recovery_codes import views as spare_codes
from allauth.mfa.totp import views as codes
from allauth.mfa.webauthn import views as passkeys
from allauth.socialaccount import views as providers
from allauth.socialaccount.providers.openid_connect import views as openid_connect
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.urls import path, re_path

from durableweb.sign_in import views
from durableweb.sign_in.confirming import confirm_by_provider
from runs.pages.posting import posted_from

urlpatterns = [
    # allauth and Django know the same two pages by other names
    path("login/", account.login, name="login"),
    path("login/", account.login, name="account_login"),
    path("logout/", posted_from("/")(LogoutView.as_view()), name="logout"),
    path("logout/", posted_from("/")(LogoutView.as_view()), name="account_logout"),
    path("login/code/", factors.authenticate, name="mfa_authenticate"),
    path("login/passkey/", passkeys.login_webauthn, name="mfa_login_webauthn"),
    path("login/not-now/", views.not_now, name="not_now"),
    path("login/switched-off/", account.account_inactive, name="account_inactive"),
    path("login/forgotten/", account.password_reset, name="account_reset_password"),
    path("login/forgotten/sent/", account.password_reset_done, name="account_reset_password_done"),
    re_path(
        r"^login/new-password/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        account.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "login/new-password/",
        account.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("login/at/<slug:provider_id>/", views.at_provider, name="openid_connect_login"),
    path("login/from/<slug:provider_id>/", openid_connect.callback, name="openid_connect_callback"),
    path("login/cancelled/", providers.login_cancelled, name="socialaccount_login_cancelled"),
    path("login/failed/", login_not_required(providers.login_error), name="socialaccount_login_error"),
    path("account/", factors.index, name="mfa_index"),
    path("account/password/", account.password_change, name="account_change_password"),
    path("account/password/none/", views.without_password, name="account_set_password"),
    path("account/confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("account/confirm/code/", factors.reauthenticate, name="mfa_reauthenticate"),
    path("account/confirm/passkey/", passkeys.reauthenticate_webauthn, name="mfa_reauthenticate_webauthn"),
    path("account/confirm/provider/", confirm_by_provider, name="confirm_by_provider"),
    path("account/code/", codes.activate_totp, name="mfa_activate_totp"),
    path("account/code/remove/", codes.deactivate_totp, name="mfa_deactivate_totp"),
    path("account/spare-codes/", spare_codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path("account/spare-codes/new/", spare_codes.generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path(
        "account/spare-codes/file/", spare_codes.download_recovery_codes, name="mfa_download_recovery_codes"
    ),
    path("account/passkeys/", passkeys.list_webauthn, name="mfa_list_webauthn"),
    path("account/passkeys/new/", passkeys.add_webauthn, name="mfa_add_webauthn"),
    path("account/passkeys/<int:pk>/", passkeys.edit_webauthn, name="mfa_edit_webauthn"),
    path("account/passkeys/<int:pk>/remove/", passkeys.remove_webauthn, name="mfa_remove_webauthn"),
    path("account/provider/", providers.connections, name="socialaccount_connections"),
]
