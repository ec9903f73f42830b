import os
import re
from pathlib import Path

import pytest

from symbolic_cost.emit import files
from symbolic_cost.emit.files import check_target, write_whole
from symbolic_cost.errors import InputError


def names(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("content", ["b l e = é\r\n", b"\x00\xff", ""])
def test_writes_what_was_given(tmp_path, content):
    path = tmp_path / "out.txt"
    write_whole(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert names(tmp_path) == ["out.txt"]


def test_replaces_an_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old and longer")
    write_whole(str(path), "new")
    assert path.read_text() == "new"


def test_mode_is_that_of_a_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_whole(tmp_path / "out", "x")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_stays_a_link(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "out")
    write_whole(link, "x")
    assert link.is_symlink()
    assert (tmp_path / "out").read_text() == "x"


def test_a_relative_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_whole("out", "x")
    assert names(tmp_path) == ["out"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("old")

    def fails(_, __):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.Path, "replace", fails)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the name is empty; give the name of a file"),
        ("absent/out", "directory '{here}/absent' does not exist"),
        ("folder", "is a directory; give the name of a file"),
        ("file/out", "directory '{here}/file' does not exist"),
        ("pipe", "is not a regular file; leave it out to print"),
        ("x" * 300, "cannot be written: File name too long"),
        ("a\0b", "cannot be written: its name has a null character"),
        (".", "is a directory; give the name of a file"),
    ],
)
def test_refuses(tmp_path, monkeypatch, name, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=re.escape(problem.format(here=tmp_path))):
        write_whole(name, "x")
    assert names(tmp_path) == ["file", "folder", "pipe"]


def test_refuses_a_device():
    with pytest.raises(InputError, match="is not a regular file"):
        write_whole("/dev/null", "x")
    assert Path("/dev/null").is_char_device()


def test_refuses_a_file_that_is_not_writable(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anything
    with pytest.raises(InputError, match="is not writable"):
        write_whole(path, "new")
    assert path.read_text() == "old"


def test_a_folder_that_takes_no_file_is_known_before_the_work(tmp_path):
    """Permissions do not tell: /proc has those of any folder, and takes nothing."""
    with pytest.raises(InputError, match=r"'/proc/x\.html': cannot be written: "):
        check_target("/proc/x.html")
    check_target(str(tmp_path / "out"))
    assert not names(tmp_path)


def test_a_file_system_without_unnamed_files_is_tried_as_well(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE")
    check_target(str(tmp_path / "out"))
    assert not names(tmp_path)
    write_whole(tmp_path / "out", "x")
    assert names(tmp_path) == ["out"]
