"""The core of a consumer, without I/O: positions, fetches and what becomes of their answers."""
