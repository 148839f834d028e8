from __future__ import annotations

from django.urls import path

from approvals.views import approval, decision, inbox, tending

app_name = "approvals"
urlpatterns = [
    path("", inbox.inbox, name="inbox"),
    path("inbox/list/", inbox.rows, name="rows"),
    path("inbox/new/", inbox.fresh, name="new"),
    path("inbox/count/", inbox.count, name="count"),
    path("approvals/<uuid:pk>/", approval.approval, name="approval"),
    path("approvals/<uuid:pk>/parts/<slug:part>/", approval.part, name="part"),
    path("approvals/<uuid:pk>/draft/", approval.draft, name="draft"),
    path("approvals/<uuid:pk>/decision/", decision.decision, name="decision"),
    path("approvals/<uuid:pk>/undo/", decision.undo, name="undo"),
    path("approvals/<uuid:pk>/comments/", tending.comment, name="comments"),
    path("approvals/<uuid:pk>/claim/", tending.claim, name="claim"),
]
