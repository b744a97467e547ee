"""The client beside its peers, in one run against one broker."""
