"""The audit on Spark: its plan as bins, what tasks do with them, and the result as frames."""
