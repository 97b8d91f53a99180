"""Fetch sessions of consumers (KIP-227), pure. Those of followers, which a leader pushes on, are in `replication`."""
