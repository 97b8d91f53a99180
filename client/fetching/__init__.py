"""The fetch loop, by partition and without a group: consumers and `odradek consume` stand on it."""
