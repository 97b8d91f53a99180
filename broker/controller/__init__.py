"""What the controller decides: who leads which partition, who is fenced. One broker alone is its own controller.

The rules of a partition's state are pure and stand in `cluster` (partition_changes, reassignment); here is who applies
them, and when.
"""
