"""The table, letter by letter: what is aligned where, what is rounded how, and which verdict stands at its end."""

from benchmarks.figures.figures import Bar, Figure, Statement, Summary
from benchmarks.figures.table import figure_table, markdown


def test_figures_stand_in_rows_with_their_spread_ratio_and_verdict() -> None:
    figures = [
        Figure("produce", "MB/s", Summary((1300.0, 1200.0, 1250.4)), Summary((60.0, 68.0, 66.0)), Bar("≥", 1.0)),
        Figure("start", "s", Summary((0.5,)), Summary((2.5,)), Bar("≤", 0.15), digits=2),
        Figure("CPU", "s/GB", Summary((3.26,)), Summary((14.0,)), digits=1),
    ]
    assert figure_table(figures, "Odradek 0.1.0", "Apache Kafka 4.3.1").splitlines() == [
        "| figure        |       Odradek 0.1.0 | Apache Kafka 4.3.1 | ratio |    bar |        |",
        "| ------------- | ------------------: | -----------------: | ----: | -----: | -----: |",
        "| produce, MB/s | 1,250 [1,200–1,300] |         66 [60–68] |  18.9 |    ≥ 1 |    met |",
        "| start, s      |    0.50 [0.50–0.50] |   2.50 [2.50–2.50] |   0.2 | ≤ 0.15 | MISSED |",
        "| CPU, s/GB     |       3.3 [3.3–3.3] |   14.0 [14.0–14.0] | 0.233 |        |        |",
    ]


def test_a_disturbed_measurement_decides_nothing() -> None:
    """Neither a bar that seems to be met nor one that seems to be missed."""
    figures = [Figure("a", "s", Summary((1.0,)), Summary((2.0,)), Bar("≤", bound)) for bound in (0.9, 0.1)]
    rows = figure_table(figures, "ours", "theirs", is_preliminary=True).splitlines()[2:]
    assert [row.split("|")[-2].strip() for row in rows] == ["open", "open"]


def test_a_statement_has_no_ratio_and_its_bar_bears_the_unit() -> None:
    statements = [
        Statement("lag", "ms", Summary((20.0, 50.0)), None, Bar("≤", 50.0)),
        Statement("p99 by p99", "", Summary((2.5,)), Summary((1.0,)), Bar("≤", 2.0), 1),
    ]
    rows = figure_table(statements, "ours", "theirs").splitlines()[2:]
    assert [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows] == [
        ["lag, ms", "35 [20–50]", "", "", "≤ 50 ms", "met"],
        ["p99 by p99", "2.5 [2.5–2.5]", "1.0 [1.0–1.0]", "", "≤ 2", "MISSED"],
    ]


def test_a_table_without_rows_is_a_head() -> None:
    assert markdown(["a", "b"], []).splitlines() == ["| a   |   b |", "| --- | --: |"]
