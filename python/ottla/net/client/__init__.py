"""What moves bytes and time between sockets and the core of a client, on asyncio or in a thread."""
