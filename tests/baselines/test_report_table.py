from rich.console import Console

from baselines.comparison import lines
from baselines.curves import draw_curves, read_curve
from baselines.report_table import csv_text, markdown, notes, terminal
from tests.baselines.toy_rows import row

ROWS = [
    row(None, None, [[0, 0], [1, 0]]),
    row("gigpo", 1, [[1, 1], [1, 1]]),
    row("gigpo", 2, [[1, 1], [1, 1]]),
    row("grpo", 1, [[0, 0], [0, 0]]),
    row("grpo", 2, [[1, 1], [1, 0]]),
    row("rloo", 1, [[1, 0], [1, 0]]),
]

GOLDEN = """\
| estimator | seeds | success % | 95 % interval | look % | pick % | steps an episode | \
rows trained a run | above warm start |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
| warm start |  | 25.0 | 0.0 to 50.0 | 0.0 | 50.0 | 4.5 | 0 |  |
| gigpo | 1, 2 | 100.0 | 100.0 to 100.0 | 100.0 | 100.0 | 4.5 | 1,150 | yes |
| grpo | 1, 2 | 37.5 | 0.0 to 75.0 | 25.0 | 50.0 | 4.5 | 1,150 | \
no: interval includes the warm start |
| rloo | 1 | 50.0 | n/a | 0.0 | 100.0 | 4.5 | 1,100 | n/a |

- A note.
"""


def test_the_table_in_markdown():
    assert markdown(lines(ROWS), ["A note."]) == GOLDEN


def test_the_table_in_csv_has_shares():
    text = csv_text(lines(ROWS)).splitlines()
    assert text[0].startswith("estimator,seeds,success,low,high,score,look,pick")
    assert text[3] == "grpo,1 2,0.375,0.0,0.75,0.375,0.25,0.5,4.5,1150.0,no"
    assert text[4].startswith("rloo,1,0.5,,,")


def test_scores_have_a_column_where_they_are_not_just_success():
    shop = [row("grpo", 1, [[0, 0], [0, 0]], score=0.625)]
    assert "| 0.625 |" in markdown(lines(shop), [])


def test_the_terminal_shows_every_line():
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(terminal(lines(ROWS)))
    console.file.close()
    shown = console.export_text()
    assert all(name in shown for name in ("warm start", "gigpo", "grpo", "37.5", "above warm"))


def test_the_notes_name_all_that_a_reader_must_know():
    text = " ".join(notes(ROWS, planned=12, command="python -m scripts.compare"))
    for needed in (
        "Partial: 5 of 12 cells",
        "toy/held_out: 2 games, hash abcd",
        "123, 456",
        "5,000 resamples",
        "f00d",
        "beef",
        "convention paper",
        "torch 2.13",
        "python -m scripts.compare",
    ):
        assert needed in text
    assert "Partial" not in " ".join(notes(ROWS, planned=5, command=""))


def test_the_notes_say_how_much_of_a_folder_was_played():
    partial = row(None, None, [[1, 0], [1, 1]], data="official 132/134")
    assert "2 games, official 132/134, hash abcd" in " ".join(notes([partial], 1, ""))


def test_a_curve_ends_with_the_result(tmp_path):
    assert read_curve(ROWS[1], tmp_path) == {10: 1.0}
    (tmp_path / "evaluations.jsonl").write_text(
        '{"iteration": 0, "success": 0.25}\n{"iteration": 5, "success": 0.5}\n'
    )
    assert read_curve(ROWS[1], tmp_path) == {0: 0.25, 5: 0.5, 10: 1.0}


def test_curves_are_drawn_even_before_the_first_cell(tmp_path):
    curves = {r.name: {0: 0.25, 10: r.success} for r in ROWS[1:]}
    for rows in (ROWS[:1], ROWS):
        draw_curves(rows, curves, tmp_path / "curves.png")
        assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["curves.png"]
