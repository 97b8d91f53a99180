"""The brokers of a cluster, what is known of its topics, and the connections that keep both fresh."""
