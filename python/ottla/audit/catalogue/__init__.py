"""Findings and causes: their meaning, their severity, and what to do."""
