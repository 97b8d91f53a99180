"""Choices whose first steps cost more than they had to: the last step finds the cheaper one."""

from odradek.client.commands.spreading.choosing import Item, chosen


def test_bins_with_room_take_part_where_that_costs_less() -> None:
    """Bin 0 holds one too many and bin 3 one too few. Moving `dear` from one to the other costs a move; moving `left`
    to bin 1 and `right` to bin 3 costs nothing."""
    items = {
        "left": Item(1, able=(0, 1), present={0, 1}),
        "dear": Item(1, able=(0, 3), present={0}),
        "right": Item(1, able=(2, 3), present={2, 3}),
    }
    assert chosen(items, low=(0, 0, 0, 1), high=(1, 1, 1, 1)) == {"left": {1}, "dear": {0}, "right": {3}}
