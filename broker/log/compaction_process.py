"""The compaction worker as a process, which a broker starts (runtime/own_program.py).

It speaks on its standard input and output (runtime/worker_process.py), and ends with the first of them.
"""

import sys
from functools import partial

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.log.compaction_worker import compact
from odradek.runtime.worker_main import run_worker


def main() -> None:
    sys.exit(run_worker(partial(compact, FileDisk())))
