"""Record batches (magic 2): headers and checks, records in and out, compression, and what a broker rewrites in them."""
