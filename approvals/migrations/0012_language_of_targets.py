"""In which language a chat is told."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0011_quick_indexes")]

    operations = [
        migrations.AddField(
            model_name="target",
            name="language",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Of a chat. Empty: that of the user whom it is for, else the site's.",
                max_length=10,
            ),
        ),
    ]
