"""What an idempotent producer numbers its batches by, and what it does when a broker refuses a number (KIP-98).

Pure. Who asks it is `batching`, when a batch is drained, and `sending`, when an answer came.
"""
