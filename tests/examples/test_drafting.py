"""Drafts: by a model over real HTTP with all its failures, and without one from the packages' own sentences."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from examples.distributions import Distribution, look_up
from examples.drafting import EXTRACTIVE, Draft, draft_brief
from examples.extractive import MADE_HOW
from runs import Permanent, Transient
from tests.examples.model_server import ModelServer

GOAL = "Choose a library for background tasks"
FOUND = [look_up.fn(vendor) for vendor in ("django-q2", "channels")]


@pytest.fixture
def model(monkeypatch) -> Iterator[Callable[..., ModelServer]]:
    """Starts a model with a script and points the environment at it."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    with ExitStack() as open_servers:

        def start(*script: str, **options: str) -> ModelServer:
            server = open_servers.enter_context(ModelServer(script, **options))
            monkeypatch.setenv("BRIEF_MODEL_URL", server.url)
            monkeypatch.setenv("BRIEF_MODEL_NAME", "tiny-1")
            return server

        yield start


@pytest.fixture
def no_model(monkeypatch) -> None:
    monkeypatch.delenv("BRIEF_MODEL_URL", raising=False)


def draft(feedback: tuple[str, ...] = (), api_key: str | None = None, timeout: float = 5.0) -> Draft:
    return draft_brief.fn(GOAL, FOUND, list(feedback), api_key, timeout=timeout)


def test_a_model_drafts_from_goal_findings_and_reasons(model):
    server = model("ok")

    made = draft(["name the maintainers"])

    assert "We compared django-q2, channels." in made.text
    assert "You asked: name the maintainers" in made.text
    assert made.by == "tiny-1"
    assert made.tokens > 100
    (question,) = server.questions
    assert question["model"] == "tiny-1"
    assert [message["role"] for message in question["messages"]] == ["system", "user"]
    assert json.loads(question["messages"][1]["content"])["packages"][0]["licence"] == FOUND[0].licence
    assert not question["authorized"]


def test_the_key_is_sent_and_a_wrong_one_is_a_refusal_without_the_key_in_it(model):
    server = model("ok", api_key="right-key-1234")

    assert draft(api_key="right-key-1234").by == "tiny-1"
    with pytest.raises(Permanent, match="answered 401: Incorrect API key") as refused:
        draft(api_key="wrong-key-5678")
    assert "wrong-key-5678" not in str(refused.value)
    assert [question["word"] for question in server.questions] == ["ok", "401"]


@pytest.mark.parametrize("word", ["429", "503"])
def test_retry_after_is_passed_on(model, word):
    model(word, retry_after="17")

    with pytest.raises(Transient, match=f"answered {word}") as later:
        draft()
    assert later.value.retry_after == 17


def test_retry_after_may_be_a_date(model):
    model("429", retry_after=format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True))

    with pytest.raises(Transient) as later:
        draft()
    assert 50 < later.value.retry_after <= 60


@pytest.mark.parametrize("written", ["", "soon", "-5", "nan", "Wed, 99 Foo 2020"])
def test_a_senseless_retry_after_is_no_retry_after(model, written):
    model("429", retry_after=written)

    with pytest.raises(Transient) as later:
        draft()
    assert not later.value.retry_after


def test_a_date_that_has_passed_means_now(model):
    model("503", retry_after="Wed, 21 Oct 2015 07:28:00 GMT")

    with pytest.raises(Transient) as later:
        draft()
    assert later.value.retry_after == 0


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("500", "answered 500: The server had an error"),
        ("broken", "an answer that cannot be read"),
        ("no-choices", "an answer that cannot be read"),
        ("empty", "sent an empty answer"),
        ("hangup", "cannot be reached"),
    ],
)
def test_what_may_pass_is_transient_and_the_next_try_succeeds(model, word, words):
    server = model(word, "ok")

    with pytest.raises(Transient, match=words):
        draft()
    assert draft().by == "tiny-1"
    assert [question["word"] for question in server.questions] == [word, "ok"]


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("400", "answered 400: This model's maximum context length"),
        ("404", "answered 404: The model does not exist"),
        ("quota", "answered 429: You exceeded your current quota"),
        ("refused", "refused: I cannot help with that"),
    ],
)
def test_a_refusal_is_permanent_and_in_the_provider_s_words(model, word, words):
    model(word)
    with pytest.raises(Permanent, match=words):
        draft()


def test_silence_after_the_request_was_read_ends_at_the_time_limit(model):
    server = model("silence")

    with pytest.raises(Transient, match=r"did not answer within 2 s"):
        draft(timeout=2.0)
    assert len(server.questions) == 1  # it was read


def test_what_is_secret_in_the_address_is_used_but_not_written_down(model, monkeypatch, caplog):
    """Case O4."""
    server = model("404", "ok")
    monkeypatch.setenv("BRIEF_MODEL_URL", server.url.replace("http://", "http://user:pa55-canary@"))
    caplog.set_level("DEBUG")

    with pytest.raises(Permanent) as refused:
        draft()
    draft()

    assert "pa55-canary" not in str(refused.value) + caplog.text
    assert all(question["authorized"] for question in server.questions)


def test_nobody_there_is_transient(monkeypatch, model):
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        monkeypatch.setenv(
            "BRIEF_MODEL_URL", f"http://user:pa55@127.0.0.1:{nobody_listens.getsockname()[1]}/v1"
        )
        monkeypatch.setenv("BRIEF_MODEL_NAME", "tiny-1")
        with pytest.raises(Transient, match="cannot be reached") as unreachable:
            draft()
    assert "pa55" not in str(unreachable.value)


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1/v1", "127.0.0.1:9000/v1", "http://[::1/v1", "http://h:port/v1"]
)
def test_what_is_no_address_is_a_setting_to_be_corrected(monkeypatch, url):
    monkeypatch.setenv("BRIEF_MODEL_URL", url)
    monkeypatch.setenv("BRIEF_MODEL_NAME", "tiny-1")
    with pytest.raises(Permanent, match="BRIEF_MODEL_URL is no address of a model"):
        draft()


def test_a_model_without_a_name_is_a_setting_to_be_corrected(monkeypatch):
    monkeypatch.setenv("BRIEF_MODEL_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("BRIEF_MODEL_NAME", raising=False)
    with pytest.raises(Permanent, match="BRIEF_MODEL_NAME is not"):
        draft()


def test_the_model_server_also_runs_as_a_process():
    command = [
        sys.executable,
        "-m",
        "tests.examples.model_server",
        "--script",
        "429,ok",
        "--retry-after",
        "3",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = json.loads(server.stdout.readline())["url"]
            task = {"goal": GOAL, "packages": [], "reasons_for_rejecting_earlier_drafts": []}
            question = {"model": "m", "messages": [{"role": "user", "content": json.dumps(task)}]}
            with httpx.Client(trust_env=False) as client:
                answers = [client.post(f"{url}/chat/completions", json=question) for _ in range(3)]
                asked = client.get(url.replace("/v1", "/questions")).json()
        finally:
            server.kill()
    assert [answer.status_code for answer in answers] == [429, 200, 200]
    assert answers[0].headers["Retry-After"] == "3"
    assert [question["word"] for question in asked] == ["429", "ok", "ok"]


def test_without_a_model_the_draft_says_so_and_quotes_the_packages(no_model):
    made = draft()

    assert (made.by, made.tokens) == (EXTRACTIVE, 0)
    assert made.text.startswith(f"Goal: {GOAL}\n\n{MADE_HOW}")
    assert "Scheduled, cron and repeated tasks" in made.text
    for found in FOUND:
        assert f"- {found.name} {found.version}: licence {found.licence}" in made.text
    assert "Only django-q2 needs django-picklefield." in made.text
    assert "All of them need django." in made.text
    assert draft() == made


def test_every_sentence_about_a_package_is_its_own(no_model):
    made = draft()

    for found in FOUND:
        block = made.text.split(f"\n{found.name}: {found.summary}\n")[1].split("\n\n")[0]
        said = block.splitlines()[:-1]
        assert said
        assert all(any(line in paragraph for paragraph in found.readme) for line in said)


def test_a_reviewer_s_reason_is_quoted_and_followed(no_model):
    first, shorter, longer = (
        draft(),
        draft(["Shorter, please"]),
        draft(["Shorter, please", "now more detail"]),
    )

    assert '- "Shorter, please"' in shorter.text
    assert '- "now more detail"' in longer.text
    assert _about(shorter) < _about(first) < _about(longer)


def test_a_reason_s_words_choose_the_sentences(no_model):
    plain, asked = draft(), draft(["say who did Ilan Steemers start it with"])

    assert "Big thanks to Ilan Steemers" not in plain.text
    assert "Ilan Steemers for starting this project" in asked.text


def test_a_sentence_that_leans_on_another_is_not_torn_out(no_model):
    """Alone it would say of this package that its development has stalled."""
    assert any("Unfortunately, development has stalled" in paragraph for paragraph in FOUND[0].readme)
    assert "Unfortunately" not in draft().text


def test_a_package_that_says_nothing_is_still_compared(no_model):
    silent = Distribution(
        name="silent", version="1", summary="not stated", licence="not stated", requires=[], python=">=3",
        home_page="not stated", readme=[],
    )  # fmt: skip
    made = draft_brief.fn(GOAL, [silent], [])
    assert "Its README says nothing more." in made.text
    assert "needs no other package" in made.text
    assert "Side by side" not in made.text


def _about(made: Draft) -> int:
    """How many lines the draft holds between the overview and the comparison."""
    return len(made.text.split("At a glance")[1].split("Side by side")[0].splitlines())
