"""Who is excluded anywhere is found at once: a search is asked of few approvals, whoever they ask.

The indexes of the search itself need an extension of PostgreSQL, and are made after each migrate, where it is:
approvals/search_index.py.
"""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0007_mail_language")]

    operations = [
        migrations.AddIndex(
            model_name="reviewer",
            index=models.Index(
                condition=models.Q(("excluded", True)), fields=["name", "approval"], name="reviewer_excluded"
            ),
        ),
    ]
