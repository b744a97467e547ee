"""Group coordinator, sans I/O: classic groups, consumer groups (KIP-848) and committed offsets."""
