"""The admin client: topics, partitions, configurations, records, cluster."""
