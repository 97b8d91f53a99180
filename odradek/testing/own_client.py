"""How the test kit's own clients name themselves: faults and recorded requests leave them out."""

from typing import Final

CLIENT_ID: Final = "odradek-testing"
