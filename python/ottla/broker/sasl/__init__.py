"""SASL: who a client is, by PLAIN or SCRAM, before its first request (KIP-43, KIP-84, KIP-152)."""
