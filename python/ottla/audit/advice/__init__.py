"""Deeds before the next start of a broker, each tried before anybody is told about it.

A deed deletes or moves files of a log directory. The engine predicts the start over the directory
as the deed would leave it, and what that costs is the deed's price: partitions that keep the broker
from starting, and readable offsets that are no longer in the log.

`trial` tries one start, `candidates` knows what can be done to a partition, `partition` prices a
partition's options, `deeds` puts the partitions of a log directory together, and `deed` is what
comes of it.
"""
