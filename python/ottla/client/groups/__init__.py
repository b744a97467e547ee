"""Consumers that share partitions: membership, assignment, committed offsets, without I/O."""
