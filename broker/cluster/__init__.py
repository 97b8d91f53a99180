"""The cluster's metadata: where it is stored, under which keys, and the immutable image that handlers read.

The store (`store` and what implements it) does IO; topics, image, placement, partition_changes, reassignment, lineage
and uses are pure. Who follows the store is `membership`, who decides is `controller`.
"""
