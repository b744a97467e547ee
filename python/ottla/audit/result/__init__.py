"""The result of an audit: its tables, and the formats they can be written in."""
