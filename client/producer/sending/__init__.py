"""Ready batches to their leaders, and what each answer means for them.

Connections are `client.cluster`'s; what a caller sees of the end of a record is in `results`.
"""
