"""The seam to files: the interface `Disk`, the real one and one in memory, and how bytes get from a file to a socket.

Only this room opens, writes, syncs and renames (`tests/test_source.py`).
"""
