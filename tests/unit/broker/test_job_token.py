"""The file of the token of jobs: made for its owner only, kept, and replaced where it is of no use."""

import logging
import os
import stat
from pathlib import Path

import pytest

from hpwsn.broker.job_token import FILE_NAME, load_job_token
from hpwsn.errors import HpwsnError

VALID = "x" * 43


def test_a_new_token_is_long_random_and_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        token = load_job_token(tmp_path)
    finally:
        os.umask(before)
    file = tmp_path / FILE_NAME
    text = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert text.endswith("\n")
    assert len(text) == 44
    assert token.accepts(text.strip())
    (tmp_path / "other").mkdir()
    assert not load_job_token(tmp_path / "other").accepts(text.strip())
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == [FILE_NAME]


def test_an_existing_token_stays(tmp_path: Path) -> None:
    file = tmp_path / FILE_NAME
    for text in (VALID, VALID + "\n", "x" * 32, "x" * 512):
        file.write_text(text)
        file.chmod(0o600)
        assert load_job_token(tmp_path).accepts(text.strip())
        assert file.read_text() == text


@pytest.mark.parametrize("text", ["", "\n", "x" * 31, "x" * 513, VALID + " y", "é" * 40, VALID + "\n\n"])
def test_a_bad_file_is_replaced_with_a_warning(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(text)
    file.chmod(0o600)
    with caplog.at_level(logging.WARNING):
        token = load_job_token(tmp_path)
    assert token.accepts(file.read_text().strip())
    assert not token.accepts(text.strip())
    assert "has no valid token and is replaced" in caplog.text
    assert file.read_text().strip() not in caplog.text


def test_a_file_that_others_could_read_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(VALID)
    file.chmod(0o640)
    assert not load_job_token(tmp_path).accepts(VALID)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "was open to other users" in caplog.text


def test_a_token_is_not_shown(tmp_path: Path) -> None:
    token = load_job_token(tmp_path)
    secret = (tmp_path / FILE_NAME).read_text().strip()
    assert secret not in f"{token} {token!r}"


@pytest.mark.parametrize("given", ["", "é", "\udcff", "x"])
def test_what_is_not_the_token_is_not_accepted(tmp_path: Path, given: str) -> None:
    assert not load_job_token(tmp_path).accepts(given)


def test_a_folder_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(HpwsnError, match=r"job.token cannot be written: .*; check"):
        load_job_token(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [FILE_NAME]
