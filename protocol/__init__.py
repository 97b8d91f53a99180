"""The Kafka wire protocol, pure: bytes to values and back, without sockets, files, clocks or chance.

Import the module that you need (`odradek.protocol.codec`, `odradek.protocol.frames`,
`odradek.protocol.messages.produce`, ...): this package imports nothing by itself, so that a part costs only what it
uses.
"""
