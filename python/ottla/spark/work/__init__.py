"""How work goes to tasks: functions and items as bytes, in pieces of a sensible size."""
