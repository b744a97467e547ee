"""A client of Kafka whose errors say what to do."""
