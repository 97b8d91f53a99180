"""`python -m odradek.broker` is `odradek serve`."""

from odradek.broker.command import serve

if __name__ == "__main__":
    serve(prog_name="python -m odradek.broker")
