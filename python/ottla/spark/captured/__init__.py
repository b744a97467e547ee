"""Captured record sets: verdicts on a column of them, and the records they hold."""
