"""Who may do what: principals, resources, operations, and the one question that every handler asks.

How a connection comes by its principal is `network`; ACLs in the metadata answer the question, once there are any.
"""
