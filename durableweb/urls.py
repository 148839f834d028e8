from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.generic import RedirectView
from django_q.models import Failure, OrmQ, Schedule, Success

from durableweb.metrics import metrics
from durableweb.sign_in import admin as sign_in_admin
from runs.pages.posting import posted_from
from runs.work.tick import tick

admin.autodiscover()  # not when Django starts: durableweb/late_admin.py

# A message in django-q2's tables is only a bell: nothing there is for people to schedule, resend or read.
for model in (Failure, OrmQ, Schedule, Success):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
sign_in_admin.register()

urlpatterns = [
    # One sign-in page: the admin site's own would serve its looser content policy to strangers.
    path(
        "admin/login/",
        login_not_required(RedirectView.as_view(pattern_name="login", query_string=True)),
    ),
    path("admin/logout/", posted_from("admin:index")(admin.site.logout)),
    path("admin/", admin.site.urls),
    path("", include("durableweb.sign_in.urls")),
    path("tick/", tick, name="tick"),
    path("metrics/", metrics, name="metrics"),
    path("runs/", include("runs.urls")),
    path("", include("approvals.urls")),
]
