"""Sign-in at a provider of identities (OpenID Connect), against a real one over HTTP."""

from __future__ import annotations

import pytest
from allauth.account.authentication import get_authentication_records
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.utils import timezone

from approvals.models import Decision
from durableweb.sign_in.adapters import AccountAdapter
from runs import registry
from runs.core.graph import END, Graph
from runs.models.worker import GraphVersion
from tests.approvals.cases import ask

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("with_provider")]


def groups_of(name: str) -> set[str]:
    return set(User.objects.get(username=name).groups.values_list("name", flat=True))


def signed_in_as(browser) -> str | None:
    pk = browser.here.session.get("_auth_user_id")
    return User.objects.get(pk=pk).username if pk else None


def test_the_first_sign_in_makes_an_account_in_the_mapped_groups(browser):
    answer = browser.sign_in("ada", next="/runs/")
    assert (answer.status_code, answer["Location"]) == (302, "/runs/")
    ada = User.objects.get(username="ada")
    assert (ada.email, ada.get_full_name()) == ("ada@example.com", "Ada Obi")
    assert not ada.has_usable_password() and not ada.is_staff and not ada.is_superuser
    assert groups_of("ada") == {"pm"}
    assert signed_in_as(browser) == "ada"
    account = SocialAccount.objects.get(user=ada)
    assert "access_token" not in str(account.extra_data) and not account.socialtoken_set.exists()


def test_each_sign_in_takes_the_groups_as_they_are_now_and_leaves_others_alone(browser):
    browser.sign_in("ada")
    ada = User.objects.get(username="ada")
    ada.groups.set([Group.objects.get_or_create(name=name)[0] for name in ("ops", "auditors")])
    browser.here.post("/logout/")
    browser.sign_in("ada")
    assert groups_of("ada") == {"pm", "auditors"}
    assert User.objects.count() == 1


def test_who_is_in_no_mapped_group_is_not_let_in(browser):
    answer = browser.sign_in("eve")
    assert answer.status_code == 403
    assert "names no group" in answer.content.decode()
    assert signed_in_as(browser) is None and not User.objects.exists()


def test_who_has_left_the_groups_loses_them_and_is_not_let_in_again(browser, settings):
    browser.sign_in("ada")
    browser.here.post("/logout/")
    settings.OIDC = settings.OIDC | {"groups": [("board", "pm")]}
    assert browser.sign_in("ada").status_code == 403
    assert groups_of("ada") == set() and signed_in_as(browser) is None


def test_anyone_is_let_in_only_where_the_setting_says_so(browser, settings):
    settings.OIDC = settings.OIDC | {"anyone": True}
    browser.sign_in("eve")
    assert (signed_in_as(browser), groups_of("eve")) == ("eve", set())


def test_nobody_becomes_a_reviewer_by_being_called_as_a_group_is(browser):
    """Reviewers are named by user or group, so a person called pm would decide for the group pm."""
    Group.objects.create(name="PM")
    Group.objects.create(name="pm")
    browser.sign_in("pm")
    name = signed_in_as(browser)
    assert name is not None and name.lower() != "pm"


def test_nobody_is_called_as_a_group_that_the_mapping_will_make(settings):
    """On a fresh installation a mapped group has no row before the first of its people has signed in."""
    settings.OIDC = settings.OIDC | {"groups": [("board", "pm")]}
    assert not Group.objects.filter(name="pm").exists()
    for name in ("pm", "PM"):
        with pytest.raises(ValidationError, match="A group is called so"):
            AccountAdapter().clean_username(name)
    assert AccountAdapter().clean_username("ada") == "ada"


def pay(run, state):
    """A node of nothing but its name."""


@pytest.mark.parametrize("asked", ["finance", "Finance", "night-shift", "board"])
def test_nobody_is_called_as_a_group_that_a_graph_declares(asked):
    """Of a graph that is served here, or was served by whichever process: no row of the group need exist."""
    GraphVersion.objects.create(graph="gone", version=1, viewers="board", seen_at=timezone.now())
    graph = Graph("payroll", viewers="finance", operators="night-shift")
    graph.node(then=END)(pay)
    registry.add(graph)
    try:
        with pytest.raises(ValidationError, match="A group is called so"):
            AccountAdapter().clean_username(asked)
        assert AccountAdapter().clean_username("ada") == "ada"
    finally:
        registry.remove(graph)


def test_who_is_asked_before_they_first_come_keeps_their_name(browser):
    """A question names people and groups alike: only the first sign-in tells that ada is a person."""
    ask(reviewers=("ada",))
    browser.sign_in("ada")
    assert signed_in_as(browser) == "ada"


def test_an_account_with_the_same_address_is_not_handed_over(browser, person):
    person("carol").__class__.objects.filter(username="carol").update(email="ada@example.com")
    answer = browser.sign_in("ada")
    assert answer.status_code == 409 and "Sign in to it with its password" in answer.content.decode()
    assert signed_in_as(browser) is None and User.objects.count() == 1


def test_an_account_of_the_same_name_stays_who_it_is(browser, person):
    ada = person("ada", "board")
    User.objects.filter(pk=ada.pk).update(email="")
    browser.sign_in("ada")
    assert signed_in_as(browser) not in (None, "ada")
    assert groups_of("ada") == {"board"}


def test_who_is_signed_in_connects_their_account_and_then_comes_in_by_the_provider(browser, person):
    carol = person("carol")
    browser.here.post("/login/", {"username": "carol", "password": "carol"})
    asked = browser.here.post("/login/at/sso/?process=connect")
    answer = browser.come_back(asked, "ada")
    assert answer["Location"].startswith(
        "/account/confirm/"
    )  # whoever sits at an open browser connects nothing
    done = browser.here.post(answer["Location"], {"password": "carol"})
    assert done["Location"] == "/account/provider/"
    assert SocialAccount.objects.get().user == carol
    browser.here.post("/logout/")
    browser.sign_in("ada")
    assert signed_in_as(browser) == "carol" and groups_of("carol") == {"pm"}


def test_an_answer_that_was_not_asked_for_signs_nobody_in(browser):
    answer = browser.here.get("/login/from/sso/?code=abc&state=guess")
    assert answer.status_code == 401
    assert "did not sign you in" in answer.content.decode() and signed_in_as(browser) is None


def test_without_a_provider_its_pages_do_not_exist(browser, settings):
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": []}}
    for path in ("/login/at/sso/", "/login/from/sso/"):
        assert browser.here.get(path).status_code == 404
    assert "/login/at/" not in browser.here.get("/login/").content.decode()


# -- to sign without a password ------------------------------------------------------------------------------


def decide(browser, approval, **more):
    entries = {
        "verdict": "approve",
        "revision": "1",
        "operation_id": f"op-{Decision.objects.count()}",
        **more,
    }
    return browser.here.post(f"/approvals/{approval.pk}/decision/", entries)


def confirm(browser, name: str):
    page = browser.here.post("/account/confirm/provider/", {"next": "/runs/"})
    return browser.come_back(page, name)


def test_who_has_no_password_signs_after_signing_in_at_the_provider_again(browser):
    browser.sign_in("ada")
    first, second = ask(sign=True), ask(sign=True)
    refused = decide(browser, first)
    page = refused.content.decode()
    assert refused.status_code == 422 and "first confirm that it is you" in page
    assert "/account/confirm/provider/?next=" in page and 'type="password"' not in page
    assert confirm(browser, "ada")["Location"] == "/runs/"
    assert "This signs one decision" in browser.here.get(f"/approvals/{first.pk}/").content.decode()
    assert decide(browser, first).status_code == 302
    decision = Decision.objects.get()
    assert '"how":"sign-in at Example"' in decision.signature and decision.signed_in == "sign-in at Example"
    assert decide(browser, second).status_code == 422, "one proof signs one decision"


def test_signing_in_the_first_time_is_no_signature(browser):
    browser.sign_in("ada")
    assert decide(browser, ask(sign=True)).status_code == 422


@pytest.mark.parametrize("way", ["redirect", "login"])
def test_coming_back_from_the_provider_without_being_asked_again_is_no_proof(browser, way):
    """Whoever sits at an open browser can go there and back; the provider would let them pass."""
    browser.sign_in("ada")
    browser.come_back(browser.here.post(f"/login/at/sso/?process={way}&next=/runs/"), "ada")
    assert decide(browser, ask(sign=True)).status_code == 422


def test_a_provider_that_does_not_say_when_it_asked_proves_nothing(browser, with_provider):
    browser.sign_in("ada")
    (with_provider / "forgets").touch()
    answer = confirm(browser, "ada")
    assert answer.status_code == 403 and "cannot vouch for you now" in answer.content.decode()
    assert decide(browser, ask(sign=True)).status_code == 422


def test_somebody_elses_sign_in_proves_nothing(browser, provider):
    browser.sign_in("ada")
    browser.there.cookies.clear()
    answer = confirm(browser, "bob")
    assert answer.status_code == 403 and "Somebody else" in answer.content.decode()
    assert signed_in_as(browser) == "ada"
    assert decide(browser, ask(sign=True)).status_code == 422


def test_who_has_no_password_sets_up_codes_after_confirming_so(browser):
    browser.sign_in("ada")
    asked = browser.here.get("/account/code/")
    assert asked["Location"].startswith("/account/confirm/provider/")
    confirm(browser, "ada")
    assert browser.here.get("/account/code/").status_code == 200
    assert "needs no password" not in browser.here.get("/account/").content.decode()


def test_a_forgotten_password_gives_none_to_whom_the_provider_vouches_for(browser, mailoutbox):
    browser.sign_in("ada")
    browser.here.post("/logout/")
    answer = browser.here.post("/login/forgotten/", {"email": "ada@example.com"})
    assert answer["Location"] == "/login/forgotten/sent/" and mailoutbox == []
    browser.sign_in("ada")
    assert (
        browser.here.get("/account/password/", follow=True).redirect_chain[-1][0] == "/account/password/none/"
    )


def test_how_one_signed_in_is_kept_for_the_trail(browser, rf):
    browser.sign_in("ada")
    request = rf.get("/")
    request.session, request.user = browser.here.session, User.objects.get(username="ada")
    assert [one["method"] for one in get_authentication_records(request, request.user)] == ["socialaccount"]
