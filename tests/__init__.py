"""The tests. They mirror the source file by file; `tests/test_source.py` holds what no tool checks."""
