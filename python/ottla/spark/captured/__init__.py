"""Captured record sets: verdicts on a column of them, and their records."""
