"""The audit on Spark: the plan as bins, the work of tasks, and the result as data frames."""
