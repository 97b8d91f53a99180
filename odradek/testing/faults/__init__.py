"""Faults on the wire of a test's cluster, put in on purpose, and the requests that its clients have sent."""
