"""Whatever a command's streams lead to, and whatever is typed, it ends with a line and no traceback."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import IO

import pytest

from rafka.cli import main
from rafka.cli.connected import confirm
from rafka.cli.output import CommandError
from tests.brokers import ROOT

NOBODY = "127.0.0.1:1"


class Typed(io.StringIO):
    """A terminal at which this is typed."""

    def isatty(self) -> bool:
        return True


def run(
    command: str, *, stdout: IO[bytes] | int = subprocess.PIPE, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """A line for the shell, in which `rafka` is ours."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LC_", "PYTHON", "RAFKA_", "KAFKA_"))
    }
    return subprocess.run(
        ["sh", "-c", f'rafka() {{ {sys.executable} -m rafka "$@"; }}; {command}'],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=inherited | {"PYTHONPATH": str(ROOT), **env},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["group", "delete", "billing"],
        ["group", "delete-offsets", "billing", "--topic", "orders"],
        ["topic", "delete", "orders"],
        ["topic", "delete-records", "orders", "--before", "end"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("answer", ["n\n", "\n", ""], ids=["no", "return", "end of input"])
def test_at_a_terminal_it_is_asked_first_wherever_the_output_goes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], answer: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Typed(answer))

    assert main([*words, "-b", NOBODY]) == 1

    told = capsys.readouterr()
    assert "? [y/N] " in told.err
    assert "nothing was deleted" in told.err
    assert told.out == ""


def test_yes_is_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in ("y\n", " YES \n"):
        monkeypatch.setattr(sys, "stdin", Typed(answer))
        confirm("Delete billing?")
    monkeypatch.setattr(sys, "stdin", Typed("yesterday\n"))
    with pytest.raises(CommandError, match="nothing was moved"):
        confirm("Move billing?", "nothing was moved")


def test_a_question_moves_no_cursor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Typed("n\n"))

    main(["group", "delete", "a\x1b[2Jb", "-b", NOBODY])

    assert r"Delete a\x1b[2Jb with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "code"),
    [("rafka --version >&-", 0), ("rafka group list -b 127.0.0.1:1 >&- <&-", 1), ("rafka nope 2>&-", 2)],
)
def test_a_closed_stream_is_one_that_leads_nowhere(command: str, code: int) -> None:
    done = run(command)

    assert (done.returncode, b"Traceback" in done.stderr) == (code, False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_said_in_a_line(unbuffered: str) -> None:
    done = run("rafka serve --print-config > /dev/full", PYTHONUNBUFFERED=unbuffered)

    assert done.returncode == 1
    assert done.stderr == b"rafka serve: the output cannot be written: No space left on device\n"


def test_a_name_that_is_no_text_is_said_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["describe", "\udcff"], ["lag", "\udcff"], ["delete-offsets", "g", "--topic", "\udcff"]):
        assert main(["group", *words, "-b", NOBODY]) == 2
        assert "not a name in this locale's encoding: '\\udcff'" in capsys.readouterr().err


def test_what_the_locale_has_no_letters_for_is_escaped() -> None:
    code = "import rafka.cli as c; c.main(['--version']); print('\\u00e9')"

    done = run(f'{sys.executable} -c "{code}"', LC_ALL="POSIX", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")

    assert done.stdout.splitlines()[-1] == b"\\xe9", done.stderr
