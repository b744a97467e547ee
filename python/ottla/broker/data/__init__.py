"""The directory in which a broker keeps what survives it: a log directory as Kafka's (KIP-631)."""
