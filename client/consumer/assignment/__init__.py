"""How the leader of a classic group divides partitions among its members: pure, with Kafka's names and bytes."""
