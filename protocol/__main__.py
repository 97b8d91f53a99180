"""`python -m odradek.protocol ProduceRequest 9` prints the source of decoder and encoder of a message at a version."""

import sys

from odradek.protocol.codec.decoding import decoder_source
from odradek.protocol.codec.encoding import encoder_source
from odradek.protocol.codec.layout import layout_of_message
from odradek.protocol.declared import declared_messages


def main(arguments: list[str]) -> int:
    """The exit code: 1 for a version that is not declared, 2 for other mistakes."""
    declared = declared_messages()
    if len(arguments) != 2 or arguments[0] not in declared or not arguments[1].isdecimal():
        sys.stderr.write(f"usage: python -m odradek.protocol NAME VERSION\nNAME is one of {', '.join(declared)}\n")
        return 2
    try:
        layout = layout_of_message(declared[arguments[0]], int(arguments[1]))
    except ValueError as why:
        sys.stderr.write(f"{why}\n")
        return 1
    sys.stdout.write(f"{decoder_source(layout).text()}\n\n{encoder_source(layout).text()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
