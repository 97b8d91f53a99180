"""The producer: a record's way from `send` to its acknowledgement (docs/architecture.md)."""
