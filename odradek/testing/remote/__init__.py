"""A test's cluster in a process of its own, and the connection over which the test's process calls it."""
