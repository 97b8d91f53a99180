"""What `odradek partitions spread` does: which replicas move, which replica leads (both pure), and how that is run."""
