"""Sending work to tasks: functions and items as bytes, in pieces of suitable size."""
