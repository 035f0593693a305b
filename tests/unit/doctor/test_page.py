"""``docs/doctor.md`` is written from the catalogue."""

from pathlib import Path

import pytest

from router_ext.doctor import page
from router_ext.doctor.catalogue import CHECKS

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_in_the_repository_is_the_generated_one() -> None:
    """After a change of a check: ``python -m router_ext.doctor.page docs/``."""
    assert (DOCS / page.FILE).read_text(encoding="utf-8") == page.page()


def test_the_page_has_a_section_for_each_check() -> None:
    """With its id, its reason and how to mend it."""
    text = page.page()
    assert all(f"\n## {one.id}\n" in text and one.why in text and one.mending in text for one in CHECKS)


def test_the_command_writes_the_page_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exactly one argument; else usage and exit code 2."""
    assert page.main([str(tmp_path)]) == 0
    assert (tmp_path / page.FILE).exists()
    assert page.main([]) == 2
    assert "usage" in capsys.readouterr().err
