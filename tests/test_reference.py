"""The reference pages say what the code says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "draw_docs.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the drawing script is not part of this copy")


@pytest.fixture
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_docs", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_is_out_of_date(drawing: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert drawing.main(["--check"]) == 0, capsys.readouterr().err


def test_a_page_that_is_out_of_date_is_named_and_drawn_again(
    drawing: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "REFERENCE", tmp_path)
    drawing.main([])
    page = tmp_path / "errors.md"
    page.write_text(page.read_text().replace("OFFSET_OUT_OF_RANGE", "OFFSET_SOMEWHERE_ELSE"))
    capsys.readouterr()

    assert drawing.main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/reference/errors.md is out of date: run scripts/draw_docs.py\n"
    assert drawing.main([]) == 0
    assert drawing.main(["--check"]) == 0


def test_every_setting_and_every_topic_config_has_its_row(drawing: ModuleType) -> None:
    from rafka.config import Config
    from rafka.machines.config_topic_table import TABLE

    page = drawing.configuration()

    assert all(f"| `{row.key}` |" in page for row in Config().explain())
    assert all(f"| `{name}` |" in page for name in TABLE)
