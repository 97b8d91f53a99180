"""`odradek dump`: what stands in a log's files, printed and verified. It only ever reads."""
