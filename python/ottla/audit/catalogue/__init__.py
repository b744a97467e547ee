"""Findings and causes: what each means, how grave it is, and what to do."""
