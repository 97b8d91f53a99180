"""The judge: a history of plain records, and which promises of a cluster it breaks.

Pure, and without the rest of the simulator: the histories of real processes are judged by it, too.
"""
