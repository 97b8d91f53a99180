"""Accepted records in batches, a queue for each partition, and one budget of memory.

Pure: it is told the time and drained, and knows no loop, connection or program. Who drains it is `sending`.
"""
