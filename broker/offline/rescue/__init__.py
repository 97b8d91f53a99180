"""`odradek cluster backup`, `restore` and `rebuild`: the cluster's metadata saved, brought back, or found anew."""
