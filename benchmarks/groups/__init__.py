"""What groups cost a broker: commits, rebalances, failover of a coordinator, groups that idle, loading of offsets."""
