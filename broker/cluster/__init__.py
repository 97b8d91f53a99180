"""The cluster's metadata: where it is stored, under which keys, and the immutable image that handlers read."""
