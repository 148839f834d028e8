"""Notices of approvals to people by mail, and to chats and webhooks that staff set up.

A change writes an Occasion in its own transaction (`outbox`); a chore finds out whom to tell and writes a Notice for
each (`addressing`); another sends them one by one (`sending`). At least once, each under an id that stays the same.
"""
