from __future__ import annotations

from django.urls import path

from runs.pages import views
from runs.pages.preferences import preferences

app_name = "runs"
urlpatterns = [
    path("", views.run_list, name="list"),
    path("rows/", views.run_rows, name="rows"),
    path("preferences/", preferences, name="preferences"),
    path("<uuid:run_id>/", views.run_detail, name="run"),
    path("<uuid:run_id>/live/", views.run_live, name="live"),
    path("<uuid:run_id>/texts/", views.run_texts, name="texts"),
    path("<uuid:run_id>/blobs/<slug:sha256>/", views.run_blob, name="blob"),
    path("<uuid:run_id>/cancellation/", views.run_cancellation, name="cancellation"),
]
