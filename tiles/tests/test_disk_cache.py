"""Files of the cache are whole or absent, readable by whom the umask says, and a failure leaves nothing behind."""

from __future__ import annotations

import os

import pytest

from warpwave.tiles import disk_cache
from warpwave.tiles.errors import UnsupportedError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WARPWAVE_CACHE", str(tmp_path))
    return disk_cache.folder("built")


def test_a_file_is_replaced_whole(folder):
    disk_cache.write_whole(folder / "kernel.s", b"first")
    disk_cache.write_whole(folder / "kernel.s", b"second")
    assert [p.read_bytes() for p in folder.iterdir()] == [b"second"]


def test_a_file_has_the_mode_that_the_umask_leaves(folder):
    before = os.umask(0o027)
    try:
        disk_cache.write_whole(folder / "kernel.s", b"x")
    finally:
        os.umask(before)
    assert (folder / "kernel.s").stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_is_reported_and_leaves_nothing(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_cache.os, "replace", full)
    with pytest.raises(UnsupportedError, match="No space left") as error:
        disk_cache.write_whole(folder / "kernel.s", b"x")
    assert "WARPWAVE_CACHE" in str(error.value)
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_made_is_reported(folder):
    folder.parent.joinpath("built").write_text("a file")
    with pytest.raises(UnsupportedError, match="cannot be written"):
        disk_cache.write_whole(folder / "kernel.s", b"x")
