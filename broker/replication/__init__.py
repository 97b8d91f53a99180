"""Partitions and their replicas: who is in sync, how far the high watermark may go, who may append."""
