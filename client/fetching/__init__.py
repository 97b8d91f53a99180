"""The plain fetch loop, by partition and without a group; the consumer will grow from it."""
