"""Data directories: which are used and by whom, where a partition lies in them, and the files that stand at their top.

What stands in a partition's own directory belongs to `log`.
"""
