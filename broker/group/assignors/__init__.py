"""The assignors of consumer groups (KIP-848): pure functions from a group's members to the partitions of each."""
