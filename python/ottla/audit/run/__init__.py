"""Scanning: what one file takes, and how threads share the files of a plan."""
