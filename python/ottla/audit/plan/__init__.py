"""Plans what to scan: the files of each log, ranges of large files, copies of partitions."""
