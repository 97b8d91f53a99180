"""How records end: the result that a batch's records share, and what a caller holds of it.

Why one ends is decided in `sending`.
"""
