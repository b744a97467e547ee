"""What moves bytes and time between sockets and a broker. No rule of Kafka is here.

`Server` owns whatever it serves (`Served`) on one thread with a selector. Everybody else comes in
by `Server.run`. The bounds of it all are in `limits`.
"""
