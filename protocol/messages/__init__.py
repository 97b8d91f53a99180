"""The messages of the Kafka protocol: one module an API, with its request and its response for all versions.

Declarations and nothing else; `odradek.protocol.codec.schema` says what they mean. Import the module that you need.
"""
