"""Who may do what: principals, resources, operations, and the one question that every handler asks.

How a connection comes by its principal is `network`. Where an authorizer is set, the ACLs of the metadata answer.
"""
