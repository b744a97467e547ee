"""Batches of a producer on their way to the leaders of partitions, without I/O."""
