"""Speed on Spark: our doors beside aiokafka in the same kind of tasks, in one run.

`make bench-spark` takes two cores, a warm page cache and a session of `ottla.spark.session`. The
wall clock counts, since it is what a user waits for; jobs run in turn, and a ratio is the median of
the rounds' ratios. CPU seconds are those of the JVM, of every Python worker it started, and of the
driver's Python: `processes` reads them from `/proc`.
"""
