"""A whole cluster and its clients in one process, from a seed: with all that can go wrong, and what must hold."""
