"""Connections to brokers, and what a client knows of the cluster, without I/O."""
