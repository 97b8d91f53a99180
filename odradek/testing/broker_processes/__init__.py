"""A test's cluster with a process for each broker, and one that starts and ends them."""
