"""The `rafka` command itself: finding commands, helping, failing, and being cut short."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import rafka
from rafka import cli
from rafka.cli import COMMANDS, main
from rafka.cli.output import CommandError, bootstrap, print_json, print_table


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A command of ours in the place of `topic`."""
    module = ModuleType("topic")
    module.DESCRIPTION = "Topics."  # type: ignore[attr-defined]
    module.EXAMPLES = ""  # type: ignore[attr-defined]
    module.configure = lambda parser: None  # type: ignore[attr-defined]
    monkeypatch.setattr(cli, "_module", lambda name: module)
    return module


def test_help_lists_every_command_and_imports_none() -> None:
    code = (
        "import sys; from rafka.cli import main; main(['--help']);"
        "dear = ('rafka.cli.serve', 'rafka.config', 'trio', 'attrs', 'logging');"
        "sys.exit(any(m in sys.modules for m in dear))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert all(f"  {name} " in done.stdout and line in done.stdout for name, line in COMMANDS.items())


def test_nothing_asked_for_is_help_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "rafka serve" in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"rafka {rafka.__version__}\n"


def test_help_of_a_command_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "serve"]) == main(["serve", "--help"]) == 0
    assert capsys.readouterr().out.count("rafka serve -c server.properties") == 2


def test_an_unknown_command_suggests_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serv"]) == 2
    assert capsys.readouterr().err == "rafka: there is no command 'serv'; did you mean `rafka serve`?\n"


@pytest.mark.parametrize(
    ("raised", "code", "told"),
    [
        (
            CommandError("no broker at a:1; is it running?"),
            1,
            "rafka topic: no broker at a:1; is it running?\n",
        ),
        (CommandError("bad\x1b[2Jname\n", 2), 2, "rafka topic: bad\\x1b[2Jname\\n\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_failures_are_one_harmless_line(
    raised: BaseException, code: int, told: str, command: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(args: object) -> int:
        raise raised

    command.run = run  # type: ignore[attr-defined]

    assert main(["topic"]) == code
    assert capsys.readouterr().err == told


def test_nobody_reading_the_output_is_no_traceback() -> None:
    program = (
        "import sys; from rafka import cli; from types import SimpleNamespace as S;"
        "cli._module = lambda name: S(DESCRIPTION='', EXAMPLES='', configure=lambda p: None,"
        " run=lambda a: print('x\\n' * 100000) or 0);"
        "sys.exit(cli.main(['topic']))"
    )

    writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.readline()
    writer.stdout.close()

    assert (writer.stderr.read(), writer.wait(timeout=20)) == (b"", 141)
    writer.stderr.close()


def test_a_table_has_columns_that_a_script_can_count_on(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("TOPIC", "LAG", "OWNER"), [("orders", 12, None), ("a\tb", True, "")])

    assert capsys.readouterr().out == "TOPIC   LAG   OWNER\norders  12    -\na\\tb    true  -\n"


def test_json_is_one_line_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"topic": "größe", "partitions": [0, 1]})

    assert capsys.readouterr().out == '{"topic": "größe", "partitions": [0, 1]}\n'


@pytest.mark.parametrize(
    ("words", "environ", "expected"),
    [
        ([], {}, "127.0.0.1:9092"),
        ([], {"KAFKA_BOOTSTRAP_SERVERS": "k:1"}, "k:1"),
        ([], {"KAFKA_BOOTSTRAP_SERVERS": "k:1", "RAFKA_BOOTSTRAP": "r:1"}, "r:1"),
        (["-b", "b:1"], {"RAFKA_BOOTSTRAP": "r:1"}, "b:1"),
        (["--bootstrap-server", "b:1"], {}, "b:1"),
        (["--brokers", "b:1,c:1"], {}, "b:1,c:1"),
    ],
)
def test_where_the_broker_is_may_be_said_as_other_tools_have_it(
    words: list[str], environ: dict[str, str], expected: str
) -> None:
    from rafka.cli.output import add_bootstrap

    parser = cli.Parser()
    add_bootstrap(parser)

    assert bootstrap(parser.parse_args(words), environ) == expected
