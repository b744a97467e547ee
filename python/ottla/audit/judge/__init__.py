"""Judges scans: a log, its copies, its side files, its next start, its coordinators' topics."""
