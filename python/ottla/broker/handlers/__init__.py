"""What the broker does for each API: a file each, imported at the first request."""
