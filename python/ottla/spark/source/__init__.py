"""Logs as a data source of Spark: read once, or followed as they grow."""
