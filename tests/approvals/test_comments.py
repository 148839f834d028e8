"""Comments: who is mentioned and told of it, what is attached and who may load it."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import timedelta

import nh3
import pytest
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as some

from approvals import files as attaching
from approvals.chain import trail
from approvals.files import Sent, clean_name, media_type_of
from approvals.mentions import mentionable, names_in
from approvals.models import Approval, Attachment, Notice
from runs import blob_holders
from runs.engine.sweeping import sweep_files
from runs.errors import Invalid
from runs.models import Blob
from runs.testing import moved_clock
from tests.amounts import examples
from tests.approvals.cases import ask, told, waiting_run
from tests.approvals.pages import as_person, page_of, url
from tests.approvals.test_notices import clock_is_put_back as clock_is_put_back
from tests.approvals.test_notices import do_due, sent
from tests.approvals.test_notices import on as on

PDF = b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + b"\0" * 40
HTML = b"<!doctype html><html><script>alert(1)</script></html>"


@pytest.fixture(autouse=True)
def files_of_the_test(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


def office() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", "<w:document/>")
    return file.getvalue()


# -- mentions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@bob, look", ["bob"]),
        ("Ask @bob.", ["bob.", "bob"]),
        ("(@bob) and @eve-lyn!", ["bob", "eve-lyn"]),
        ("write to bob@example.com", []),
        ("@@bob and @ alone", []),
        ("@bob @bob", ["bob"]),
    ],
)
def test_a_name_behind_an_at_sign_is_a_mention_and_an_address_is_none(text, names):
    assert names_in(text) == names


@pytest.mark.django_db
def test_who_is_mentioned_and_may_see_it_is_told_and_gets_no_right(on, ada, bob, person):
    carl = person("carl")
    approval = ask(run=waiting_run(created_by=carl))
    do_due()
    sent()
    approval.comment(ada, "@carl, @bob and @nobody-at-all: is this right? @ada")
    do_due()
    assert sent() == [("bob", "You are mentioned"), ("carl", "You are mentioned")]
    assert "is this right" not in str(Notice.objects.get(person=carl, occasion="mentioned").error)
    assert carl not in Approval.objects.get(pk=approval.pk).reviewers.values_list("name", flat=True)


@pytest.mark.django_db
def test_one_comment_tells_no_crowd(ada, bob, monkeypatch):
    monkeypatch.setattr("approvals.mentions.MOST", 1)
    approval = ask()
    approval.comment(ada, "@bob")
    with pytest.raises(Invalid, match="At most 1 people"):
        approval.comment(ada, "@ada @bob")
    assert told(approval) == ["opened", "commented by ada"]


@pytest.mark.django_db
def test_a_mention_of_one_who_may_not_see_it_says_so_and_keeps_the_text(on, ada, person):
    person("mallory")
    approval = ask()
    answer = as_person(ada).post(url(approval, "comments"), {"text": "@mallory, have a look"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "mallory may not see this, so a mention would not reach them" in page
    assert "@mallory, have a look</textarea>" in page and told(approval) == ["opened"]


@pytest.mark.django_db
def test_a_name_chosen_from_the_list_needs_no_script(on, ada, bob, eve):
    approval = ask()
    client = as_person(ada)
    assert '<option value="bob">' in page_of(client, approval)
    assert [one.username for one in mentionable(Approval.objects.for_page().get(pk=approval.pk), ada)] == [
        "bob"
    ]
    client.post(url(approval, "comments"), {"text": "Right?", "mention": "bob"})
    assert trail(approval)[-1].text == "@bob Right?"


@pytest.mark.django_db
def test_who_is_named_is_marked_and_the_rest_of_a_comment_stays_text(ada, bob):
    approval = ask()
    bob.first_name = '"><img src=x>'
    bob.save()
    approval.comment(ada, '<script>alert(1)</script> @bob, @bob.: @nobody, bob@example.com\n"@ada" & on')
    page = page_of(as_person(bob), approval)
    [said] = re.findall(r"(?s)</header><p>(.*?)</p>", page)
    assert re.sub("<[^>]*>", "", said) == (
        "&lt;script&gt;alert(1)&lt;/script&gt; @bob, @bob.: @nobody, bob@example.com&quot;@ada&quot; &amp; on"
    )
    assert re.findall(r'class="(mention[^"]*)"[^>]*>(.*?)</span>', said) == [
        ("mention mention-you", "@bob"),
        ("mention mention-you", "@bob"),
        ("mention", "@ada"),
    ]
    kept = nh3.clean(said, tags={"span", "br"}, attributes={"span": {"class", "title"}})
    assert kept.count("<") == said.count("<") == 7, "there is nothing in it that a cleaner takes out"


# -- attachments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("offer.pdf", "offer.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\Angebot Müller.pdf", "Angebot Müller.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ('a"b\r\nX-Evil: 1.txt', "a_bX-Evil_ 1.txt"),
        ("...", "file"),
        ("", "file"),
        (".htaccess", "htaccess"),
        ("x" * 300 + ".pdf", "x" * 96 + ".pdf"),
    ],
)
def test_names_are_cleaned(name, clean):
    assert clean_name(name) == clean


@pytest.mark.parametrize(
    ("name", "content", "kept"),
    [
        ("offer.pdf", PDF, "offer.pdf"),
        ("a.JPG", b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01" + bytes(20), "a.JPG"),
        ("a.png.exe", PNG, "a.png.exe.png"),
        ("run.bat", b"echo hello", "run.bat.txt"),
        ("x.html", HTML, "x.html.txt"),
        ("x.SVG", b"<svg onload='alert(1)'/>", "x.SVG.txt"),
        ("prices.csv", b"item,price", "prices.csv"),
        ("Makefile", b"all:", "Makefile"),
        ("x" * 96 + ".exe", PNG, "x" * 96 + ".png"),
    ],
)
def test_a_name_ends_as_its_kind_does_where_a_desktop_would_run_it(name, content, kept):
    (file,) = attaching.checked([Sent(name, content)])
    assert file.name == kept


@given(some.text(max_size=300))
@settings(max_examples=examples(200), deadline=None)
def test_any_name_becomes_one_that_a_header_and_a_file_system_take(name):
    clean = clean_name(name)
    assert 0 < len(clean) <= attaching.LONGEST_NAME and clean == clean_name(clean)
    assert clean.isprintable() and not set(clean) & set('\\/:*?"<>|') and not clean.startswith(".")


@pytest.mark.parametrize(
    ("content", "name", "kind"),
    [
        (PDF, "a.pdf", "application/pdf"),
        (PDF, "a.txt", "application/pdf"),
        (PNG, "a.png", "image/png"),
        (HTML, "a.png", "text/plain"),
        (b"#!/bin/sh\nrm -rf /\n", "a.pdf", "text/plain"),
        ("Grüße".encode(), "a.txt", "text/plain"),
        (b"MZ" + bytes(range(256)), "a.pdf", ""),
        (b"\x7fELF" + bytes(200), "a.txt", ""),
        (bytes(range(256)), "a.bin", ""),
    ],
)
def test_a_kind_is_told_from_the_bytes(content, name, kind):
    assert media_type_of(content, name) == kind


def test_an_office_document_is_known_among_archives():
    assert media_type_of(office(), "brief.docx").endswith("wordprocessingml.document")


@pytest.mark.django_db
def test_a_file_is_in_the_trail_held_as_a_blob_and_loaded_as_a_file_by_who_may_see_it(ada, bob, eve, person):
    """Under a name of ours, and of a kind that no browser runs, whatever was claimed of it."""
    approval = ask()
    client = as_person(ada)
    sent_with = [SimpleUploadedFile("../offer.pdf", PDF, "text/html"), SimpleUploadedFile("page.html", HTML)]
    answer = client.post(url(approval, "comments"), {"text": "The offer.", "files": sent_with})
    assert answer.status_code == 302
    assert told(approval) == ["opened", "commented by ada", "attached by ada", "attached by ada"]
    offer, page = Attachment.objects.all()
    assert (offer.name, offer.media_type, offer.size, offer.by) == (
        "offer.pdf",
        "application/pdf",
        len(PDF),
        ada,
    )
    assert offer.blob_id in offer.activity.text, "the chain says which bytes"
    assert f'href="{offer.get_absolute_url()}"' in page_of(as_person(bob), approval)
    assert not Blob.objects.filter(blob_holders.nobody(), pk=offer.blob_id).exists(), "nobody collects it"

    for file, content, kind in ((offer, PDF, "application/pdf"), (page, HTML, "text/plain")):
        loaded = as_person(bob).get(file.get_absolute_url())
        assert loaded.content == content and loaded["Content-Type"] == kind
        assert loaded["Content-Disposition"] == f'attachment; filename="{file.name}"'
        assert (
            loaded["X-Content-Type-Options"] == "nosniff" and "sandbox" in loaded["Content-Security-Policy"]
        )
    stranger = as_person(person("mallory"))
    assert stranger.get(offer.get_absolute_url()).status_code == 404
    other = ask(reviewers=("mallory",))
    assert stranger.get(url(other, "attachment", number=offer.pk)).status_code == 404
    assert (
        stranger.post(url(approval, "comments"), {"files": SimpleUploadedFile("a.pdf", PDF)}).status_code
        == 404
    )


@pytest.mark.django_db
def test_what_is_too_much_or_of_another_kind_is_refused_whole(ada, monkeypatch):
    monkeypatch.setattr(attaching, "LARGEST", 200)
    monkeypatch.setattr(attaching, "QUOTA", 300)
    approval = ask()
    for files, said in (
        ([Sent("a.exe", bytes(range(100, 200)))], "kind"),
        ([Sent("a.txt", b"x" * 201)], "larger than"),
        ([Sent("a.txt", b"")], "is empty"),
        ([Sent(f"{number}.txt", b"x") for number in range(6)], "At most 5 files"),
        ([Sent("a.txt", b"x" * 160), Sent("b.txt", b"x" * 160)], "in all"),
    ):
        with pytest.raises(Invalid, match=said) as refused:
            approval.comment(ada, "Here.", files)
        assert "files" in refused.value.fields
    assert told(approval) == ["opened"] and not Attachment.objects.exists()
    approval.comment(ada, "", [Sent("a.txt", b"x" * 160)])
    with pytest.raises(Invalid, match="are used"):
        approval.comment(ada, "", [Sent("b.txt", b"x" * 160)])


@pytest.mark.django_db
def test_a_known_secret_is_not_attached(ada, monkeypatch):
    from runs import secrets

    def refuse(text, field):
        if "hunter2" in text:
            raise Invalid("No.", {field: ["No."]})

    monkeypatch.setattr(secrets, "refuse", refuse)
    for sent_one in (Sent("a.txt", b"the password is hunter2"), Sent("of hunter2.pdf", PDF)):
        with pytest.raises(Invalid) as refused:
            ask().comment(ada, "", [sent_one])
        assert "files" in refused.value.fields
    assert not Attachment.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_bytes_are_stored_before_the_run_is_held_and_a_refused_file_belongs_to_nobody(ada, monkeypatch):
    saving = storages["default"].save
    held, names = [], []

    def save(name, content):
        held.append(connection.in_atomic_block)
        names.append(saving(name, content))
        return names[-1]

    monkeypatch.setattr(storages["default"], "save", save)
    first, second = ask(), ask()
    for approval in (first, first, second):
        approval.comment(ada, "", [Sent("a.txt", b"alike"), Sent("b.txt", b"alike")])
    assert held == [False, False], "two files at once, of bytes that nobody had; then they are there"
    assert Blob.objects.count() == 1 and Attachment.objects.count() == 6
    assert as_person(ada).get(Attachment.objects.last().get_absolute_url()).content == b"alike"

    monkeypatch.setattr(attaching, "QUOTA", 5 + 5 + 5 + 5 + 4)
    monkeypatch.setattr(
        Approval, "bytes_attached", property(lambda approval: 20 * connection.in_atomic_block)
    )
    with pytest.raises(Invalid, match="are used"):
        first.comment(ada, "", [Sent("c.txt", b"other")])
    assert held == [False] * 3 and Blob.objects.count() == 1
    with moved_clock() as moved:
        moved.move(timedelta(days=3))
        sweep_files()
    there = [storages["default"].exists(name) for name in names]
    assert there == [True, False, False], "no row names the second of two alike, nor the one that was refused"
