"""What handlers are given and what they share: the context, changes of the metadata, forwarding, what a client is
shown.

Code that exactly one handler needs stays with that handler in `api`.
"""
