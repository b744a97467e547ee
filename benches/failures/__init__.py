"""What clients of Kafka do in twenty failures, measured: `docs/client/failures.md`.

Each client runs in a process of its own, an *agent*, which takes the same few commands whatever the
client; the broker, and a proxy that damages answers, are in the hand of the scenario. What a
scenario observes is data, in `results.json`, of which the page is made.
"""
