"""`python -m broker` is `odradek serve`."""

from broker.command import serve

if __name__ == "__main__":
    serve(prog_name="python -m broker")
