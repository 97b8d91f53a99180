"""A client's connection: bytes in, frames, requests in order, replies out, and the memory that they may take.

What a request means is for `api`; `dispatch` decodes it and calls the handler. Connections that this broker makes to
others stand in `membership.peers`.
"""
