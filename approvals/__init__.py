"""Approvals: what people decide about runs."""
