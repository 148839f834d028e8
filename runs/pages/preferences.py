"""How one browser shows the pages: language, light or dark, whether single keys act and changes are followed.

Kept in cookies, for a browser; of the language those are told as well who send mail to its reader.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language_from_request

from runs.hooks import language_chosen
from runs.pages.posting import posted_from

THEMES = ("system", "light", "dark")
KEPT = timedelta(days=365)


@posted_from("/")
def preferences(request: HttpRequest) -> HttpResponse:
    """Keep what the form says and go back to where it was sent from."""
    back = request.POST.get("back", "/")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, require_https=request.is_secure()):
        back = "/"
    response = HttpResponseRedirect(back)
    theme = request.POST.get("theme", "system")
    _keep(response, "theme", theme if theme in THEMES else "system")
    _keep(response, "keys", "on" if request.POST.get("keys") else "off")
    _keep(response, "live", "on" if request.POST.get("live") else "off")
    if "language" in request.POST:
        _speak(request, response, request.POST["language"])
    return response


def _speak(request: HttpRequest, response: HttpResponse, language: str) -> None:
    """Anything but a language of ours means: the browser's. What is sent to a person follows."""
    if language in dict(settings.LANGUAGES):
        _keep(response, settings.LANGUAGE_COOKIE_NAME, language)
    else:
        response.delete_cookie(settings.LANGUAGE_COOKIE_NAME, samesite="Lax")
        request.COOKIES.pop(settings.LANGUAGE_COOKIE_NAME, None)
        language = get_language_from_request(request)
    language_chosen.send(sender=preferences, person=request.user, language=language)


def _keep(response: HttpResponse, name: str, value: str) -> None:
    # Not HttpOnly: the page's script changes the same cookie, and it says nothing about anyone.
    response.set_cookie(name, value, max_age=KEPT, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE)
