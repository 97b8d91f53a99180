"""The client's errors, one tree: `base` is its root, `broker_errors` what a broker answered, `client_errors` what the
client says itself, with the tree as a whole; `hints` is what to do about each code.

An error is made of facts and makes its own sentence. Nothing in here decides when one is raised.
"""
