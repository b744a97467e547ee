"""The documentation site: what is added to docs/, and what holds its links."""
