"""The log of one partition, in Apache Kafka's own files."""
