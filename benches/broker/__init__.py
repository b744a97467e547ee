"""Ottla's broker beside kfake and librdkafka's mock cluster, in one run."""
