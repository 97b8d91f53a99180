"""`odradek adopt`: takes over the data directory of a stopped Apache Kafka, or one whose `metadata.log` is lost."""
