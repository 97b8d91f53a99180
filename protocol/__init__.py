"""The Kafka wire protocol, pure: bytes to values and back, without sockets, files, clocks or chance.

`messages` declare, `codec` compiles what is declared, `batches` is what Produce and Fetch carry, `frames` stands around
each message; `primitives` and `errors` are below all of them. Import the module that you need, such as
`odradek.protocol.messages.produce`: this package imports nothing by itself, so that a part costs only what it uses.
"""
