"""The metadata store of the broker processes of one machine: the store of one process, served over a Unix socket.

`server` stands over any `MetadataStore` of its process, `store` is the one that a broker opens as `unix:PATH`. What
both say to each other stands in `messages`, and how long a lease lasts in `lease_table`, which is pure. Who runs the
server belongs into `broker.launch`.
"""
