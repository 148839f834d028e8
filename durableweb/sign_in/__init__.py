"""How people sign in: local accounts, a provider of identities (OpenID Connect), codes and passkeys, by django-allauth.

Accounts are made by administrators, or at the first sign-in by a provider that names one of the mapped groups.
"""
