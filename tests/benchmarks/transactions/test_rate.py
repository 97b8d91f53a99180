"""There is a figure for each shape that the issue names, and its bar is the issue's."""

from benchmarks.transactions.rate import BAR, SHAPES


def test_each_shape_is_measured_once() -> None:
    shapes = {(shape.client, shape.records, shape.producers, shape.is_of_cluster) for shape in SHAPES}
    assert len(shapes) == len(SHAPES) == len({shape.name for shape in SHAPES}) == 16
    assert str(BAR) == "≥ 1"
