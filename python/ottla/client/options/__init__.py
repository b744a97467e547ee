"""The options of a client: their names, types, defaults and bounds, each in one place."""
