"""Transactions: their coordinator, its log, and what producers may write (KIP-98, KIP-890)."""
