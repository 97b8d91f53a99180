"""All cores of one machine: several broker processes under one supervisor, beside one process and Apache Kafka."""
