"""Pages of docs/ that are made from tables in the source, so that they cannot differ from it.

A page prints itself: `python -m odradek.broker.pages.protocol_page`. Text that is written by hand stays in docs/.
"""
