"""Rows in motion: claiming, driving, committing, recovering."""
