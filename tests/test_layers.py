"""The house's plan, held to: who may import whom, what the sans-IO rooms may not touch, and sizes.

It reads source, it runs none of it, but for the last tests, which ask a fresh interpreter what an
import brings in. The table is the one in docs/discussion/architecture.md: change them together.
"""

from __future__ import annotations

import ast
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.brokers import ROOT

PACKAGE: Final = ROOT / "rafka"

LEAVES: Final = {"errors", "types"}  # every room may import these; `env` only the rooms that say so
ANYTHING: Final = {"*"}
MAY_IMPORT: Final[dict[str, set[str]]] = {
    "errors": set(),
    "types": set(),
    "text": set(),
    "logs": {"text"},
    "env": set(),
    "wire": set(),
    "records": set(),
    "ops": set(),
    "machines": {"ops", "records"},
    "storage": {"records", "env"},
    "config": set(),
    "link": {"ops"},
    "observe": {"ops", "link"},
    "broker": {"machines", "ops", "records", "storage", "env", "config", "observe"},
    "gateway": {"wire", "ops", "link", "config", "observe"},
    "client": {"wire", "records"},
    "cli": ANYTHING,
    "daemon": ANYTHING,
    "server": ANYTHING,
    "apart": ANYTHING,
    "testing": ANYTHING,
    "__init__": ANYTHING,
    "__main__": ANYTHING,
}

SANS_IO: Final = ("wire", "records", "ops", "machines")
OUTSIDE_WORLD: Final = {
    *("trio", "asyncio", "socket", "ssl", "select", "threading", "subprocess", "signal"),
    *("time", "datetime", "random", "secrets", "uuid", "os", "io", "pathlib", "tempfile", "shutil"),
}
# `io` and `os` are more than the world outside; what is none of it may be named here, with its reason.
HARMLESS: Final = {
    "io.BytesIO",  # a buffer in memory
}
HEAVY: Final = {
    *("lz4", "zstandard", "cramjam", "crc32c", "h11", "coredis", "opentelemetry"),
    *("kafka", "confluent_kafka", "aiokafka", "pytest", "hypothesis", "asyncio"),
}

MOST_LINES_OF_A_FILE: Final = 500
MOST_LINES_OF_A_FUNCTION: Final = 70


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    """`rafka.wire.apis.fetch` -> `wire`; the package itself is the room `__init__`."""
    return [*module.split("."), "__init__"][1]


def only_for_typing(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def statements(node: ast.AST, *, typing_too: bool, deep: bool) -> Iterator[ast.stmt]:
    """The statements below a node: `deep` enters functions, whose imports happen later."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            if only_for_typing(child) and not typing_too:
                continue
            yield child
        if deep or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from statements(child, typing_too=typing_too, deep=deep)


def imports(path: Path, *, typing_too: bool, deep: bool) -> Iterator[str]:
    """Full dotted names of what a file imports; `from x import y` gives `x.y`."""
    package = module_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in statements(tree(path), typing_too=typing_too, deep=deep):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


@functools.cache
def modules() -> dict[str, Path]:
    return {module_of(path): path for path in sources("rafka")}


def known_module(name: str) -> str | None:
    """The module of rafka that an import of this name runs, if it is one of rafka's at all."""
    while name.startswith("rafka"):
        if name in modules():
            return name
        name = name.rpartition(".")[0]
    return None


@pytest.mark.parametrize("path", sources("rafka"), ids=module_of)
def test_arrows_point_as_the_table_says(path: Path) -> None:
    room = room_of(module_of(path))
    assert room in MAY_IMPORT, f"a new room: say in MAY_IMPORT what it may import: {room}"
    allowed = MAY_IMPORT[room] | LEAVES | {room}

    for name in imports(path, typing_too=True, deep=True):
        if (target := known_module(name)) is not None and MAY_IMPORT[room] != ANYTHING:
            # The package's own names (its version, say) belong to nobody's room.
            assert room_of(target) in allowed | {"__init__"}, f"{module_of(path)} imports {name}"


def test_the_two_arrows_that_must_never_be() -> None:
    assert "broker" not in MAY_IMPORT["gateway"]
    assert "wire" not in MAY_IMPORT["broker"]


@pytest.mark.parametrize("path", sources(*(f"rafka/{room}" for room in SANS_IO)), ids=module_of)
def test_sans_io_rooms_know_no_world_outside(path: Path) -> None:
    for name in imports(path, typing_too=False, deep=True):
        outside = name.partition(".")[0] in OUTSIDE_WORLD and name not in HARMLESS
        assert not outside, f"{module_of(path)} imports {name}: let it come in as an argument"

    for node in ast.walk(tree(path)):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncWith | ast.AsyncFor), (
            f"{path}:{node.lineno} awaits"
        )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("open", "input", "print"), f"{path}:{node.lineno} {node.func.id}()"


def test_no_two_modules_import_each_other_in_a_circle() -> None:
    arrows: dict[str, set[str]] = {}
    for module, path in modules().items():
        found = (known_module(name) for name in imports(path, typing_too=False, deep=False))
        arrows[module] = {target for target in found if target is not None and target != module}

    assert circle(arrows) is None, "imported in a circle: " + " -> ".join(circle(arrows) or [])


def circle(arrows: dict[str, set[str]]) -> list[str] | None:
    """Some circle in the graph, first node repeated at its end; None where there is none."""
    finished: set[str] = set()

    def walk(node: str, way: list[str]) -> list[str] | None:
        if node in way:
            return [*way[way.index(node) :], node]
        if node not in finished:
            for after in sorted(arrows.get(node, ())):
                if found := walk(after, [*way, node]):
                    return found
            finished.add(node)
        return None

    return next((found for node in sorted(arrows) if (found := walk(node, []))), None)


def test_a_circle_would_be_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}}) is None


@pytest.mark.parametrize("path", sources("rafka", "tests", "scripts"), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_is_one_thought_and_a_function_fits_a_screen(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES_OF_A_FILE, "look for the second thought"

    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MOST_LINES_OF_A_FUNCTION, f"{node.name} is {length} lines long"


@pytest.mark.parametrize("path", sources("rafka"), ids=module_of)
def test_a_file_opens_with_what_it_is(path: Path) -> None:
    assert not path.read_text().strip() or ast.get_docstring(tree(path)), "a docstring first"


TOLD = """
import json, runpy, sys
try:
    {what}
except SystemExit:
    pass
print(json.dumps(sorted({{name.partition(".")[0] for name in sys.modules}})), file=sys.stderr)
"""
SERVE_HELP = "sys.argv[1:] = ['serve', '--help']; runpy.run_module('rafka', run_name='__main__')"


@pytest.mark.parametrize("what", ["import rafka", SERVE_HELP], ids=["import rafka", "serve --help"])
def test_starting_brings_in_nothing_optional(what: str) -> None:
    command = [sys.executable, "-c", TOLD.format(what=what)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=ROOT)

    assert set(json.loads(told.stderr.splitlines()[-1])) & HEAVY == set()
