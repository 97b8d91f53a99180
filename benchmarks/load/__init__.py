"""Generators of load, processes of their own, and the bytes that they send.

Beside them stand sinks, which answer without a broker's work: they show how fast a generator is itself.
"""
