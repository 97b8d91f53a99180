"""`python -m odradek.broker` is `odradek serve`."""

from odradek.broker.launch.serve_command import serve

if __name__ == "__main__":
    serve(prog_name="python -m odradek.broker")
