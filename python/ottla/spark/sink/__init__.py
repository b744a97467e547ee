"""Logs as a Spark sink: rows become segments of partitions."""
