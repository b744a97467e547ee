"""Logs as a Spark data source: read once, or followed as they grow."""
