"""What brokers write into internal topics: keys and values of records, in the formats of Apache Kafka.

Declared like messages (`odradek.protocol.codec.schema`). What Kafka calls the API key of such a record is its type. The
key holds it as an int16 in front of its fields, the value its own version: `group_records` reads and writes both.
"""
