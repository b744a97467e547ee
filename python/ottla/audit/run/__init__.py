"""Scanning: the request to scan one file, and threads that share the files of a plan."""
