"""Reading, processing and writing so that each record counts once."""
