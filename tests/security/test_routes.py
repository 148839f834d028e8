"""O5: each route of the site has a rule here, and keeps it: for visitors, for strangers, and for whom it is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import URLResolver, get_resolver

from approvals.models import Activity, Approval, Attachment
from runs import start
from runs.models import Blob, BlobUse, Run
from tests.amounts import some_of
from tests.approvals.pages import as_person
from tests.security.letters import posted, waiting_letter

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("letters_known")]

OPEN, PERSON, RUN, APPROVAL, TOKEN = "open", "person", "run", "approval", "token"
PROVIDER, STEP = "provider", "step"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

# Route -> who may: anyone; each signed-in person, for what is theirs; whoever may see that run, or that approval's run;
# who has the token; anyone, where a provider of identities is set up; who has given their password and not yet the
# code. What begins with admin/ is for staff.
RULES = {
    "login/": OPEN,
    "admin/login/": OPEN,
    "logout/": PERSON,
    "metrics/": TOKEN,
    "login/code/": STEP,
    "login/passkey/": OPEN,
    "login/not-now/": OPEN,
    "login/switched-off/": OPEN,
    "login/forgotten/": OPEN,
    "login/forgotten/sent/": OPEN,
    "^login/new-password/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$": OPEN,
    "login/new-password/": OPEN,
    "login/at/<slug:provider_id>/": PROVIDER,
    "login/from/<slug:provider_id>/": PROVIDER,
    "login/cancelled/": OPEN,
    "login/failed/": OPEN,
    "account/": PERSON,
    "account/password/": PERSON,
    "account/password/none/": PERSON,
    "account/confirm/": PERSON,
    "account/confirm/code/": PERSON,
    "account/confirm/passkey/": PERSON,
    "account/confirm/provider/": PERSON,
    "account/code/": PERSON,
    "account/code/remove/": PERSON,
    "account/spare-codes/": PERSON,
    "account/spare-codes/new/": PERSON,
    "account/spare-codes/file/": PERSON,
    "account/passkeys/": PERSON,
    "account/passkeys/new/": PERSON,
    "account/passkeys/<int:pk>/": PERSON,
    "account/passkeys/<int:pk>/remove/": PERSON,
    "account/provider/": PERSON,
    "tick/": TOKEN,
    "": PERSON,
    "inbox/list/": PERSON,
    "inbox/new/": PERSON,
    "inbox/count/": PERSON,
    "inbox/filters/": PERSON,
    "inbox/bulk/": PERSON,
    "inbox/bulk/undo/": PERSON,
    "runs/": PERSON,
    "runs/rows/": PERSON,
    "runs/preferences/": PERSON,
    "runs/<uuid:run_id>/": RUN,
    "runs/<uuid:run_id>/live/": RUN,
    "runs/<uuid:run_id>/texts/": RUN,
    "runs/<uuid:run_id>/blobs/<slug:sha256>/": RUN,
    "runs/<uuid:run_id>/cancellation/": RUN,
    "approvals/<uuid:pk>/": APPROVAL,
    "approvals/<uuid:pk>/parts/<slug:part>/": APPROVAL,
    "approvals/<uuid:pk>/draft/": APPROVAL,
    "approvals/<uuid:pk>/draft/kept/": APPROVAL,
    "approvals/<uuid:pk>/decision/": APPROVAL,
    "approvals/<uuid:pk>/undo/": APPROVAL,
    "approvals/<uuid:pk>/comments/": APPROVAL,
    "approvals/<uuid:pk>/attachments/<int:number>/": APPROVAL,
    "approvals/<uuid:pk>/claim/": APPROVAL,
    "away/": PERSON,
    "notices/": PERSON,
    "approvals/<uuid:pk>/assignment/": APPROVAL,
    "approvals/<uuid:pk>/part/": APPROVAL,
    "approvals/<uuid:pk>/deadline/": APPROVAL,
}
OBJECTS = [route for route, rule in RULES.items() if rule in (RUN, APPROVAL)]
POSTED = {
    "login/not-now/",
    "logout/",
    "admin/logout/",
    "inbox/filters/",
    "inbox/bulk/undo/",
    "runs/preferences/",
}
READ = {
    "runs/<uuid:run_id>/",
    "runs/<uuid:run_id>/live/",
    "runs/<uuid:run_id>/texts/",
    "runs/<uuid:run_id>/blobs/<slug:sha256>/",
    "approvals/<uuid:pk>/",
    "approvals/<uuid:pk>/parts/<slug:part>/",
    "approvals/<uuid:pk>/attachments/<int:number>/",
}


def routes(resolver: URLResolver | None = None, before: str = "") -> Iterator[str]:
    """Every route of the URLconf, as it is written there."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, route)
        else:
            yield route


ADMIN = sorted({route for route in routes() if route.startswith("admin/")} - RULES.keys())


@pytest.fixture
def run(transactional_db: None, olga: Any) -> Run:
    """Also with a file to load: its bytes are the run's blob, its link the approval's first."""
    run = waiting_letter()
    approval, blob = Approval.objects.get(run=run), Blob.objects.get(uses__run=run)
    first = Activity.objects.get(approval=approval)
    Attachment.objects.create(
        approval=approval,
        activity=first,
        blob=blob,
        name="a",
        media_type="text/plain",
        size=9,
        by=olga,
        at=first.at,
    )
    return run


def address(route: str, run: Run, **other: str) -> str:
    """The route with the real ids of a run, its approval and its blob, or with others."""
    ids = {
        "run_id": str(run.pk),
        "pk": str(Approval.objects.get(run=run).pk),
        "sha256": BlobUse.objects.filter(run=run).values_list("blob_id", flat=True)[0],
        "part": "state",
        "number": str(Attachment.objects.filter(approval__run=run).values_list("pk", flat=True).first() or 1),
        "id": "1",
        "object_id": "1",
        "content_type_id": "1",
        "provider_id": "sso",
        **other,
    }
    if "<int:pk>" in route:
        ids["pk"] = "1"
    route = route.replace(
        "^login/new-password/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$", "login/new-password/1-a-b/"
    )
    route = re.sub(r"\^\(\?P<app_label>\w+(\|\w+)*\)/\$", "auth/", route).replace("(?P<url>.*)$", "anything/")
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda match: ids[match[1]], route)


def ask(client: Client, method: str, path: str) -> Any:
    return client.generic(method, path, "verdict=approve&reason=x&text=x&revision=1", FORM)


FORM = "application/x-www-form-urlencoded"


def unmoved(run: Run) -> bool:
    approval = Approval.objects.get(run=run)
    run.refresh_from_db()
    return run.status == "waiting" and approval.is_open and approval.length == 1 and not posted


def test_every_route_has_a_rule_and_every_rule_a_route() -> None:
    assert {route for route in routes() if not route.startswith("admin/")} | {"admin/login/"} == RULES.keys()


def test_a_visitor_is_asked_to_sign_in_and_learns_nothing(run: Run) -> None:
    """By each method; a real id and an invented one are answered alike."""
    for route in [*RULES, *ADMIN]:
        methods = METHODS if route in RULES else ("GET", "POST")
        invented = address(route, run, run_id=str(uuid4()), pk=str(uuid4()), sha256="0" * 64)
        paths = {address(route, run), invented}
        for method in methods:
            for path in paths:
                answer = ask(Client(), method, path)
                said = (route, method, answer.status_code)
                if RULES.get(route) == TOKEN:
                    assert answer.status_code in (404, 405), said
                elif RULES.get(route) == OPEN:
                    failed = {401} if route == "login/failed/" else set()
                    assert answer.status_code in {200, 302, 405} | failed, said
                elif RULES.get(route) == PROVIDER:
                    assert answer.status_code in (404, 405), said
                elif RULES.get(route) == STEP:
                    assert (answer.status_code, answer["Location"]) == (302, "/login/"), said
                else:
                    assert answer.status_code == 302, said
                    assert answer["Location"].startswith(("/login/?", "/admin/login/?")), said
                assert b"Post the letter" not in answer.content
    assert unmoved(run)


def test_a_stranger_cannot_tell_someone_elses_thing_from_none(run: Run, eve: Any) -> None:
    for route in OBJECTS:
        real = address(route, run)
        invented = address(route, run, run_id=str(uuid4()), pk=str(uuid4()), sha256="0" * 64)
        for method in METHODS:
            answers = [ask(as_person(eve), method, path) for path in (real, invented)]
            codes = {answer.status_code for answer in answers}
            reads = method in ("GET", "HEAD")
            leads = reads and route not in READ  # to its page, which is not there for them either
            expected = {302} if leads else {404} if reads or method == "POST" else {404, 405}
            if route in READ and not reads:
                expected = {404, 405}
            assert codes <= expected and len(codes) == 1, (route, method, codes)
            shown = [ids_out(answer.get("Location", "") + answer.content.decode()) for answer in answers]
            assert shown[0] == shown[1], (route, method)
    assert unmoved(run)


def ids_out(text: str) -> str:
    """Without what differs anyway: ids, tokens, nonces and the time."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}", "ID", text)
    return re.sub(r'(nonce|value|content|data-now)="[^"]*"', r"\1", text)


def test_the_lists_hold_nothing_of_others_whatever_they_are_asked(run: Run, eve: Any) -> None:
    client = as_person(eve)
    approval = Approval.objects.get(run=run)
    inbox = (
        *(f"?scope={scope}" for scope in ("mine", "teams", "all", "decided", "attention")),
        f"?q={approval.pk}",
        f"?decided={approval.pk}",
        f"?open={approval.pk}",
        f"?pick={approval.pk.hex}.1",
        "?until=2020-01-01T00:00:00Z",
    )
    runs = (f"?q={run.pk}", "?graph=letters", f"?top={run.pk}")
    for path, queries in (
        ("/", (f"?decided={approval.pk}", f"?open={approval.pk}")),  # else it shows the list that follows
        ("/inbox/list/", (*inbox, *runs)),
        ("/inbox/new/", inbox),
        ("/inbox/bulk/", inbox),
        ("/runs/", (f"?q={run.pk}",)),
        ("/runs/rows/", (f"?q={approval.pk}", *runs)),
    ):
        for query in queries:
            text = client.get(f"{path}{query}", follow=True).content.decode()
            assert "Post the letter" not in text, path + query
            assert run.short_id not in text.replace(str(run.pk), ""), path + query


def test_who_may_see_a_run_is_answered_by_each_of_its_routes(run: Run, ada: Any) -> None:
    client = as_person(ada)
    for route in OBJECTS:
        path = address(route, run)
        if route in READ:
            assert ask(client, "GET", path).status_code == 200, route
            assert ask(client, "HEAD", path).status_code == 200, route
            assert ask(client, "POST", path).status_code == 405, route
        else:
            above = path.removesuffix("kept/").rstrip("/").rpartition("/")[0] + "/"
            above = above.removesuffix("draft/")
            assert ask(client, "GET", path)["Location"] == above, route
            assert ask(client, "HEAD", path)["Location"] == above, route
            assert ask(client, "PUT", path).status_code == 405, route
    assert unmoved(run)


def test_no_address_is_an_empty_page_for_who_has_signed_in_or_comes_by_a_link(run: Run, root: Any) -> None:
    """Who presses a button after the session is over signs in, and is led to its address by GET."""
    for route in [*RULES, *ADMIN]:
        if RULES.get(route) in (TOKEN, PROVIDER) or (route in ADMIN and "_id>" in route):
            continue
        for method in ("GET", "HEAD"):
            answer = ask(as_person(root), method, address(route, run))
            assert answer.status_code != 405, (route, method)
            if route in POSTED or (route in OBJECTS and route not in READ):
                assert answer.status_code == 302, route
    assert unmoved(run)


def test_who_signs_in_again_after_pressing_finds_the_approval_and_is_told_that_nothing_was_done(
    run: Run, ada: Any
) -> None:
    ada.set_password("a password of ada")
    ada.save()
    client, path = Client(), address("approvals/<uuid:pk>/", run)
    asked = client.post(f"{path}decision/?scope=all&q=letter", {"verdict": "approve", "revision": "1"})
    signed_in = client.post(asked.url, {"username": "ada", "password": "a password of ada"}, follow=True)
    assert signed_in.redirect_chain[-1] == (f"{path}?scope=all&q=letter", 302)
    assert "Nothing was done by coming here." in signed_in.content.decode()
    assert "Nothing was done by coming here." not in client.get(path).content.decode()
    assert unmoved(run)


def test_who_sees_a_run_without_operating_it_cannot_cancel_it(run: Run, ada: Any, olga: Any) -> None:
    path = f"/runs/{run.pk}/cancellation/"
    refused = as_person(ada).post(path, {"reason": "not needed"})
    assert refused.status_code == 403
    assert "Only operators" in refused.content.decode()
    assert unmoved(run)
    as_person(olga).post(path, {"reason": "not needed"})
    run.refresh_from_db()
    assert run.status == "cancelled"


def test_who_may_read_everything_may_not_act_on_it(run: Run, iris: Any) -> None:
    iris.user_permissions.add(Permission.objects.get(codename="audit"))
    client = as_person(iris)
    for route in READ:
        assert ask(client, "GET", address(route, run)).status_code == 200, route
    assert client.post(f"/runs/{run.pk}/cancellation/", {"reason": "x"}).status_code == 403
    approval = Approval.objects.get(run=run)
    said = {"verdict": "approve", "revision": "1"}
    assert client.post(f"/approvals/{approval.pk}/decision/", said).status_code == 403
    assert client.post(f"/approvals/{approval.pk}/claim/").status_code == 403
    run.refresh_from_db()
    assert run.status == "waiting"
    assert Approval.objects.get(pk=approval.pk).is_open


def test_an_account_that_is_switched_off_is_a_visitor_at_once(run: Run, ada: Any) -> None:
    client = as_person(ada)
    path = address("approvals/<uuid:pk>/", run)
    assert client.get(path).status_code == 200
    ada.is_active = False
    ada.save()
    for method in ("GET", "POST"):
        assert ask(client, method, path)["Location"].startswith("/login/")
    assert unmoved(run)


def test_someone_elses_blob_is_not_below_ones_own_run(run: Run, eve: Any) -> None:
    mine = start("letters", {}, by=eve)
    path = address("runs/<uuid:run_id>/blobs/<slug:sha256>/", run, run_id=str(mine.pk))
    assert as_person(eve).get(f"/runs/{mine.pk}/").status_code == 200
    assert as_person(eve).get(path).status_code == 404


def test_the_admin_site_is_for_staff(run: Run, eve: Any, olga: Any, root: Any) -> None:
    """A stranger is sent to sign in; staff without rights see the index alone."""
    stranger, staff = as_person(eve), as_person(olga)
    for route in ADMIN:
        path = address(route, run)
        for method in ("GET", "POST"):
            answer = ask(stranger, method, path)
            assert answer.status_code in (302, 403), (route, method)
            if answer.status_code == 302:
                places = ("/admin/login/", "/login/", "/admin/")
                assert answer["Location"].partition("?")[0] in places, (route, method)
        if "auth" in path and "object_id" not in route and "<id>" not in route:
            assert ask(staff, "GET", path).status_code in (403, 404), route
    assert staff.get("/admin/").status_code == 200
    assert as_person(root).get("/admin/auth/user/").status_code == 200
    assert unmoved(run)


def test_a_wrong_id_is_not_found_and_no_error(run: Run, ada: Any) -> None:
    client = as_person(ada)
    for path in (
        "/runs/nonsense/",
        f"/runs/{run.pk}/blobs/%00/",
        f"/runs/{run.pk}/blobs/%ED%A0%80/",
        f"/runs/{run.pk}/blobs/{'a' * 5000}/",
        f"/runs/{run.pk}/?at=999999999",
        f"/approvals/{Approval.objects.get(run=run).pk}/parts/nonsense/",
        "/approvals/%00/",
    ):
        assert client.get(path).status_code == 404, path


ODD = ("%00", "%ED%A0%80", "x" * 3000, "nonsense", "-1", "9" * 400, "%5C%27%25")


def test_a_query_typed_wrong_is_no_error(run: Run, ada: Any) -> None:
    client = as_person(ada)
    approval = Approval.objects.get(run=run)
    names = ("q", "graph", "status", "still", "tries", "label", "before", "top", "scope", "risk", "until")
    names += ("decided", "open", "at", "against", "entry", "next")
    names += ("age", "due", "requester", "reviewer", "after")
    paths = ("/", "/inbox/list/", "/inbox/new/", "/inbox/bulk/", "/runs/", "/runs/rows/", f"/runs/{run.pk}/")
    paths += (f"/runs/{run.pk}/live/", f"/approvals/{approval.pk}/", f"/approvals/{approval.pk}/parts/acts/")
    for path in paths:
        for odd in some_of(path, ODD):
            query = "&".join(f"{name}={odd}" for name in names)
            without = query.replace(f"at={odd}&", "")  # of a run's page the rest is read only then
            for asked in (query, without) if str(run.pk) in path else (query,):
                answer = client.get(f"{path}?{asked}")
                assert answer.status_code in (200, 302, 404), (path, odd, answer.status_code)
