from __future__ import annotations

from allauth.account.forms import LoginForm, ResetPasswordForm
from django.contrib.auth.models import User


class SignInForm(LoginForm):
    def add_prefix(self, field_name: str) -> str:
        """The name of a person is sent as `username`, as everywhere in Django."""
        return "username" if field_name == "login" else field_name


class ForgottenForm(ResetPasswordForm):
    """Only for whom has a password: whom a provider vouches for gets none by mail."""

    users: list[User]

    def clean_email(self) -> str:
        address = super().clean_email()
        self.users = [user for user in self.users if user.has_usable_password()]
        return address
