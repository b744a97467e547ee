"""SASL: how a client says who it is, by PLAIN, SCRAM or OAUTHBEARER (KIP-43, KIP-84, KIP-255)."""
