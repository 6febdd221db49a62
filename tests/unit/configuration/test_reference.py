"""The reference in docs/ says what the settings are."""

from pathlib import Path

from hpwsn.configuration.reference import reference
from hpwsn.settings import SETTINGS

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_page_in_docs_is_the_one_that_the_settings_make() -> None:
    remedy = "make it anew with: hpwsn check-config --reference > docs/configuration.md"
    assert PAGE.read_text("utf-8") == reference(), remedy


def test_the_page_has_a_row_for_every_setting() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `")]
    assert len(rows) == len(SETTINGS)
