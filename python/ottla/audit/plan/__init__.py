"""What to read: the files of each log, ranges of large ones, and which directories are copies."""
