"""Tables: nothing of them is lost, and columns stand below each other, whatever the letters."""

from __future__ import annotations

import io

import pytest

from rafka.cli.output import print_json, print_table
from rafka.cli.table import lines_of, shortened, width_of

LONG = "g" * 240


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_lines_go_on_below_and_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    screen = Terminal()

    print_table(["GROUP", "STATE"], [[LONG, "Stable"], ["g", "Empty"]], file=screen)

    lines = screen.getvalue().splitlines()
    assert lines[1] == f"{LONG}  Stable"
    assert lines[2].split() == ["g", "Empty"]


def test_an_empty_cell_is_a_dash() -> None:
    assert lines_of(["A", "B", "C"], [[None, "", 0]])[1].split() == ["-", "-", "0"]


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("支払い", 6), ("ｆｕｌｌ", 8), ("e\u0301a", 2), ("é", 1), ("", 0)],
)
def test_letters_are_as_wide_as_terminals_draw_them(text: str, width: int) -> None:
    assert width_of(text) == width


def test_wide_letters_do_not_move_the_next_column() -> None:
    lines = lines_of(["GROUP", "STATE"], [["支払い", "Stable"], ["orders", "Empty"]])

    assert lines == ["GROUP   STATE", "支払い  Stable", "orders  Empty"]


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [("orders", 6, "orders"), ("orders", 4, "ord…"), ("支払い", 5, "支払…"), ("支払い", 4, "支…")],
)
def test_what_is_shortened_says_so(text: str, width: int, short: str) -> None:
    assert shortened(text, width) == short


def test_where_there_is_little_room_words_give_way_and_numbers_do_not() -> None:
    rows = [["a-topic-of-a-long-name", 0, 1234567890123, 7]]

    lines = lines_of(["TOPIC", "PARTITION", "CURRENT-OFFSET", "LAG"], rows, within=40)

    assert max(map(width_of, lines)) <= 40
    assert lines[0].split()[-1] == "LAG"
    assert lines[1].split()[1:] == ["0", "1234567890123", "7"]
    assert lines[1].startswith("a-")
    assert "…" in lines[1]


def test_where_there_is_no_room_at_all_numbers_stay() -> None:
    [_, line] = lines_of(["TOPIC", "LAG"], [["orders", 123456789]], within=3)

    assert line.split() == ["ord…", "123456789"]


def test_json_is_json_in_every_encoding() -> None:
    raw = io.BytesIO()
    posix = io.TextIOWrapper(raw, encoding="ascii", errors="backslashreplace")

    print_json({"group": "é"}, file=posix)
    posix.flush()

    assert raw.getvalue() == b'{"group": "\\u00e9"}\n'
