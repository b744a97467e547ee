"""Power cuts: what a broker has done to its files is recorded, and disks are made of it.

| module | subject |
| --- | --- |
| `recorder.c` | records the calls of a process, preloaded into it |
| `journal` | what was recorded, read again |
| `disk` | which states of the disk a power cut may leave |
| `workload` | clients of a broker that is recorded, and what they were told, and when |
| `checks` | what a broker must have, that starts on such a disk |
"""
