"""The admin site's pages of notices: where staff set up targets, and see what did not arrive."""

from __future__ import annotations

from typing import Any  # what the admin site passes on
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from approvals import admin_words  # before the form: importing it names what that shows
from approvals.models import Notice, Target
from approvals.notices.channels import is_readable
from approvals.notices.chats import chat_at
from approvals.notices.guard import is_allowed
from approvals.notices.troubles import troubles
from approvals.notices.words import CHAT, OCCASIONS, TARGETS, WAITING, WEBHOOK
from runs.engine import clock
from runs.naming import for_operators


class TargetForm(forms.ModelForm):
    url = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=2_000,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "off", "spellcheck": "false"}),
        help_text=_("Of a webhook: https://… Of a chat: as Apprise writes it, such as slack://… It is kept sealed; "
                    "leave this empty to keep the one there is."),
    )  # fmt: skip
    occasions = forms.MultipleChoiceField(
        label=_("Occasions"),
        choices=list(admin_words.OCCASIONS.items()),
        widget=forms.CheckboxSelectMultiple,
        initial=OCCASIONS,
    )

    class Meta:
        model = Target
        fields = (
            "name",
            "channel",
            "url",
            "graph",
            "reviewer",
            "occasions",
            "language",
            "is_on",
            "key_number",
        )
        widgets = {
            "channel": UnfoldAdminSelectWidget(
                choices=[(word, admin_words.CHANNELS[word]) for word in TARGETS]
            ),
            "language": UnfoldAdminSelectWidget(choices=[("", "-"), *settings.LANGUAGES]),
        }

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        url, channel = given.get("url", "").strip(), given.get("channel")
        if url and channel == WEBHOOK:
            _must_be_webhook(url)
        elif url and channel == CHAT:
            _must_be_chat(url)
        elif not url and not self.instance.sealed:
            raise ValidationError({"url": _("Write the address.")})
        if not url and "channel" in self.changed_data and self.instance.sealed:
            raise ValidationError({"url": _("Another channel needs another address.")})
        return given

    def save(self, commit: bool = True) -> Target:
        if url := self.cleaned_data.get("url", "").strip():
            self.instance.url = url
        return super().save(commit)


def _must_be_webhook(url: str) -> None:
    """What can be told from the text; where it leads is checked at each connection (notices/guard.py)."""
    parts, networks = urlsplit(url), settings.DURABLEWEB["notice_networks"]
    schemes = ("https", "http") if networks else ("https",)
    if parts.scheme not in schemes or not parts.hostname or parts.username:
        raise ValidationError({"url": _("A webhook's address begins with https://, and holds no password.")})
    host = parts.hostname.strip("[]")
    is_number = host.replace(".", "").isdigit() or ":" in host
    if (is_number and not is_allowed(host, networks)) or host == "localhost":
        raise ValidationError(
            {"url": _("This address is inside; name its network in DURABLEWEB_NOTICE_NETWORKS.")}
        )
    if not is_readable(url):
        raise ValidationError({"url": _("No host can be called so.")})


def _must_be_chat(url: str) -> None:
    if chat_at(url) is None:
        raise ValidationError({"url": _("Apprise does not know such an address; see its list of services.")})


@admin.register(Target)
class TargetAdmin(ModelAdmin):
    form = TargetForm
    list_display = ("name", "channel_in_words", "shown_url", "is_on", "state", "trouble", "sent_at")
    list_filter = (admin_words.ChannelFilter, "is_on")
    readonly_fields = ("shown_url", "key", "failing_since", "trouble", "sent_at")
    actions = ("try_again",)
    empty_says = _("Chats and webhooks that are told of approvals appear here.")

    @display(description=_("address"))
    def shown_url(self, target: Target) -> str:
        return target.shown_url if target.pk else "-"

    @display(description=_("signing key"))
    def key(self, target: Target) -> str:
        return target.signing_key if target.pk and target.channel == WEBHOOK else "-"

    @display(description=_("channel"), ordering="channel")
    def channel_in_words(self, target: Target) -> Promise:
        return admin_words.CHANNELS[target.channel]

    @display(description=_("last error"))
    def trouble(self, target: Target) -> str:
        return troubles.retold(target.last_error) or "-"

    @display(description=_("state"), label={"failing": "danger", "works": "success", "untried": "info"})
    def state(self, target: Target) -> tuple[str, Promise]:
        if target.failing_since:
            return "failing", _("failing")
        return ("works", _("works")) if target.sent_at else ("untried", _("not tried"))

    @action(description=_("Send what waits now"))
    def try_again(self, request: HttpRequest, targets: Any) -> None:
        waiting = Notice.objects.filter(target__in=targets, status=WAITING)
        count = waiting.update(send_at=clock.now())
        self.message_user(request, _("%(count)s notices are sent now.") % {"count": count})

    def get_readonly_fields(self, request: HttpRequest, obj: Target | None = None) -> tuple[str, ...]:
        """Who may only look does not see the key."""
        may_change = self.has_change_permission(request, obj)
        return tuple(name for name in self.readonly_fields if may_change or name != "key")

    def get_fields(self, request: HttpRequest, obj: Target | None = None) -> list[str]:
        shown = list(self.get_readonly_fields(request, obj))
        if not self.has_change_permission(request, obj):
            return ["name", "channel", "graph", "reviewer", "language", "is_on", *shown]
        return [*TargetForm.Meta.fields, *shown]


@admin.register(Notice)
class NoticeAdmin(ModelAdmin):
    """To look at: notices come and go with what they tell of."""

    list_display = (
        "approval",
        "occasion_in_words",
        "channel_in_words",
        "to",
        "status_in_words",
        "tries",
        "send_at",
        "trouble",
    )
    list_filter = (admin_words.StatusFilter, admin_words.ChannelFilter, admin_words.OccasionFilter)
    list_select_related = ("approval", "person", "target")
    empty_says = _("Each mail and message about an approval appears here, with what became of it.")
    ordering = ("-made_at",)
    show_full_result_count = False  # of very many, each time; nor are those counted that a filter leaves
    paginator = InfinitePaginator

    @display(description=_("occasion"), ordering="occasion")
    def occasion_in_words(self, notice: Notice) -> Promise:
        return admin_words.OCCASIONS[notice.occasion]

    @display(description=_("channel"), ordering="channel")
    def channel_in_words(self, notice: Notice) -> Promise:
        return admin_words.CHANNELS[notice.channel]

    @display(description=_("status"), ordering="status")
    def status_in_words(self, notice: Notice) -> Promise:
        return admin_words.STATUSES[notice.status]

    @display(description=_("error"))
    def trouble(self, notice: Notice) -> str:
        return troubles.retold(notice.error) or "-"

    @display(description=_("to"))
    def to(self, notice: Notice) -> str:
        return for_operators(notice.person) if notice.person else str(notice.target)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Notice | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Notice | None = None) -> bool:
        return False
