"""What Kafka keeps on disk: names, directories, small files and segments; recovery and rebuilding.

`names` parses file names, `listing` lists directories as an `inventory`. `side_files`,
`checkpoints` and `metadata` read the small files, `segment` one file and `reading` a partition.
`recovery` predicts a broker's next start, and `rebuild` builds the files beside segments again.

The audit and the broker are both built on this package, which knows nothing of findings.
"""
