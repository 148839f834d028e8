from __future__ import annotations

from django.urls import path

from approvals.views import approval, away, bulk, decision, filters, inbox, notices, people, tending

app_name = "approvals"
urlpatterns = [
    path("", inbox.inbox, name="inbox"),
    path("inbox/list/", inbox.rows, name="rows"),
    path("inbox/new/", inbox.fresh, name="new"),
    path("inbox/count/", inbox.count, name="count"),
    path("inbox/filters/", filters.filters, name="filters"),
    path("inbox/bulk/", bulk.bulk, name="bulk"),
    path("inbox/bulk/undo/", bulk.undo, name="bulk-undo"),
    path("away/", away.away, name="away"),
    path("notices/", notices.notices, name="notices"),
    path("approvals/<uuid:pk>/", approval.approval, name="approval"),
    path("approvals/<uuid:pk>/parts/<slug:part>/", approval.part, name="part"),
    path("approvals/<uuid:pk>/draft/", approval.draft, name="draft"),
    path("approvals/<uuid:pk>/draft/kept/", approval.kept, name="kept"),
    path("approvals/<uuid:pk>/decision/", decision.decision, name="decision"),
    path("approvals/<uuid:pk>/undo/", decision.undo, name="undo"),
    path("approvals/<uuid:pk>/comments/", tending.comment, name="comments"),
    path("approvals/<uuid:pk>/attachments/<int:number>/", tending.attachment, name="attachment"),
    path("approvals/<uuid:pk>/claim/", tending.claim, name="claim"),
    path("approvals/<uuid:pk>/assignment/", people.assignment, name="assignment"),
    path("approvals/<uuid:pk>/part/", people.part_given, name="part-given"),
    path("approvals/<uuid:pk>/deadline/", people.deadline, name="deadline"),
]
