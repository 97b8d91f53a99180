"""`python -m odradek` is `odradek`."""

from odradek.cli import main

if __name__ == "__main__":
    main(prog_name="odradek")
