"""What transactions cost: how many a second, what writers and readers lose by them, failover, and idle ids."""
