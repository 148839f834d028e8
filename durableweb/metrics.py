"""GET /metrics/: numbers for whoever watches an installation, as Prometheus reads them."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

import approvals.measures
import runs.measures
from runs.engine import clock

KINDS = (approvals.measures, runs.measures)


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """With `Authorization: Bearer <token>`; each number is of all approvals and runs, whoever may see them."""
    token = settings.DURABLEWEB["metrics_token"]
    if not token:
        raise Http404
    if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {token}"):
        said = "The token is missing or wrong: send Authorization: Bearer <DURABLEWEB_METRICS_TOKEN>.\n"
        return HttpResponse(said, status=403, content_type="text/plain")
    registry = CollectorRegistry()  # of this answer: nothing is kept between two
    now = clock.now()
    for kind in KINDS:
        for name, number in kind.measures(now).items():
            Gauge(f"durableweb_{name}", kind.MEANINGS[name], registry=registry).set(number)
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)
