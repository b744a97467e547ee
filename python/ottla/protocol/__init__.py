"""Kafka's protocol without I/O: frames, headers, and the messages of every API in each version."""
