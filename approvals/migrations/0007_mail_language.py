"""In which language a person's mail is written."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0006_contracts_quiet_attachments")]

    operations = [
        migrations.AddField(
            model_name="noticewish",
            name="language",
            field=models.CharField(blank=True, default="", help_text="Empty: the site's.", max_length=10),
        ),
    ]
