"""What Kafka keeps on disk: names, directories, small files, segments; read, recovered, rebuilt.

`names` says what a file is called and `listing` what lies there (`inventory`). `side_files`,
`checkpoints` and `metadata` read the small files, `segment` one file and `reading` a partition.
`recovery` predicts a broker's next start and `rebuild` makes the files beside segments anew.

The audit and the broker stand on this side by side. Nothing here knows a finding.
"""
