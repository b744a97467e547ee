"""What an admin client does: topics, configurations, groups, offsets, transactions, the cluster."""
