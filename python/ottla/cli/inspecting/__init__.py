"""What `ottla inspect` is made of: batches, files beside segments, messages out of captures."""
