"""What `ottla read` is made of: what is read, which of it, and how it is written."""
