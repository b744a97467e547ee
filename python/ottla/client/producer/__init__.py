"""A producer without I/O: records in, Produce requests out, and what became of each record."""
