"""Settings of topics and of the broker, by Kafka's names."""
