"""What a program may plug in, and our own of each kind: interceptors, serializers, partitioners.

When they are called is decided in `accepting`.
"""
