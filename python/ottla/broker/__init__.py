"""A Kafka broker that takes bytes and times as arguments.

Nothing here opens a socket, reads a clock, starts a thread or draws a number: a shell
(`ottla.net`) moves bytes and time, and a simulation can do the same with both made up.
"""
