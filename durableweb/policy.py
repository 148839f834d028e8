"""The content security policy of each response: strict, but in the admin site, which only staff see."""

from __future__ import annotations

from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse


class ContentPolicyMiddleware(CSPMiddleware):
    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if not report_only and _is_staff_in_admin(request):
            # A nonce would make browsers ignore 'unsafe-inline'.
            return PolicyParts(config=settings.ADMIN_CONTENT_SECURITY_POLICY)
        return parts


def _is_staff_in_admin(request: HttpRequest) -> bool:
    if not request.path_info.startswith(reverse("admin:index")):
        return False
    user = getattr(request, "user", None)  # absent when an earlier middleware answered
    return user is not None and user.is_active and user.is_staff
