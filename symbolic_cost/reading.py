"""Files of users: read whole, in bounded time and memory, or refused."""

import csv
import json
import mmap
import os
import re
import stat
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from io import StringIO
from math import isinf
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from symbolic_cost.errors import InputError, brief, quote, refuse, visible

MOST_ROWS = 10**5
"""Rows of the longest table that is read."""

MOST_DIGITS = 40
"""Digits of the longest number that is read; no size or rate has more."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_text(path: str | Path, most: int, place: str) -> str:
    """Return the text of a regular file in UTF-8, without a byte order mark.

    Raises:
        InputError: no such file, a directory or device, too large, or not UTF-8.
    """
    try:
        # Opening a pipe would wait for who writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise InputError(f"{place}: is not a regular file")
            if state.st_size > most:
                raise InputError(f"{place}: has {state.st_size} bytes; at most {most} are read")
            data = file.read(most)
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{place}: cannot be read: its name has a null character") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{place}: is not a text file in UTF-8") from None


def toml_record(name: str, most: int, kind: str) -> tuple[dict[str, Any], str]:
    """Return what a user's TOML file holds, and how its problems name it.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    place = f"{kind} file {quote(name, 200)}"
    try:
        return tomllib.loads(read_text(name, most, place)), place
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: is not TOML: {brief(visible(str(error)), 200)}") from None


def mapped(path: str | Path, place: str) -> memoryview:
    """Return the bytes of a file; a page is read when it is looked at, so weights are not.

    Raises:
        InputError: no such file, empty, or not a regular one.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode) or not state.st_size:
                raise InputError(f"{place}: is not a regular file, or empty")
            return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "its name is no name of a file"
        raise InputError(f"{place}: cannot be read: {said}") from None


def csv_rows(
    path: str | Path, columns: Iterable[str] = (), place: str = "", *, most: int = 2**24
) -> list[dict[str, str]]:
    """Read a table in CSV, each row by the names of the first line.

    Raises:
        InputError: the file cannot be read, has no rows or too many, or lacks a column; rows with
            more or fewer cells than the first line, and rows that stand twice.
    """
    where = place or f"file {quote(str(path), 200)}"
    text = read_text(path, most, where)
    try:
        reader = csv.DictReader(StringIO(text, newline=""), skipinitialspace=True, strict=True)
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"{where}: is not a CSV file: {error}") from None
    if not 0 < len(rows) <= MOST_ROWS:
        raise InputError(f"{where}: has {len(rows)} rows; 1 to {MOST_ROWS} are accepted")
    problems = [
        f"{where}: column {quote(name)} is missing" for name in columns if name not in rows[0]
    ]
    problems += [
        f"{where}: column {quote(name)} stands {times} times"
        for name, times in Counter(reader.fieldnames or ()).items()
        if times > 1
    ]
    first: dict[tuple[object, ...], int] = {}
    for number, row in enumerate(rows, 1):
        if None in row:
            problems.append(f"{where}, row {number}: has more cells than the first line has names")
        elif None in row.values():
            problems.append(f"{where}, row {number}: has fewer cells than the first line has names")
        again = first.setdefault(tuple(map(str, row.values())), number)
        if again != number:
            problems.append(f"{where}, row {number}: is row {again} once more")
    refuse(problems)
    return rows


def in_digits(text: str) -> float:
    """Return a number in digits 0 to 9, perhaps grouped, as in 1_000.

    Raises:
        ValueError: it is none, or has digits of another script, which Python's `float` reads too.
    """
    if not text.isascii():
        raise ValueError(text)
    return float(text)


@cache
def package_data(path: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Read a data file of the package.

    Returns:
        What a .json or .toml file holds, the rows of a .csv file by column, else the text.
    """
    text = (Path(__file__).parent / path).read_text(encoding="utf-8")
    if path.endswith(".csv"):
        return list(csv.DictReader(text.splitlines()))
    readers = {"json": json.loads, "toml": tomllib.loads}
    return readers.get(path.rpartition(".")[2], str)(text)


def json_value(text: str, place: str, *, infinite: bool = False) -> Any:  # noqa: ANN401 - what it holds
    """Return what a JSON text holds; numbers are finite, keys given once, text is text.

    Args:
        text: of the file.
        place: of the text, as errors name it.
        infinite: whether the words Infinity and -Infinity are numbers here, too.

    Raises:
        InputError: not JSON, or what other readers of JSON would understand otherwise.
    """
    repeated: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated.extend(key for key, times in Counter(k for k, _ in items).items() if times > 1)
        return dict(items)

    try:
        whole, finite, word = _number_readers(place, infinite=infinite)
        values = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=whole,
            parse_float=finite,
            parse_constant=word,
        )
        if _SURROGATE.search(text):
            json.dumps(values, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        said = error.msg if text.strip() else "it is empty"
        raise InputError(f"{place}: line {error.lineno}: is not JSON: {said}") from None
    except UnicodeEncodeError:
        raise InputError(f"{place}: holds half a character (a lone surrogate)") from None
    except RecursionError:
        raise InputError(f"{place}: is not JSON: nested too deeply") from None
    refuse(
        f"{place}: {line_of(text, key)}key {quote(key)}: given more than once" for key in repeated
    )
    return values


_Reader: TypeAlias = Callable[[str], float]


def _number_readers(place: str, *, infinite: bool) -> tuple[_Reader, _Reader, _Reader]:
    """Return what reads integers, other numbers and words for numbers, all short and finite."""

    def refused(number: str) -> NoReturn:
        raise InputError(f"{place}: {quote(number)} is not a number that is accepted")

    def whole(number: str) -> int:
        return int(number) if len(number) <= MOST_DIGITS else refused(number)

    def finite(number: str) -> float:
        value = float(number) if len(number) <= MOST_DIGITS else refused(number)
        return refused(number) if isinf(value) else value

    def word(text: str) -> float:
        return float(text) if infinite and text != "NaN" else refused(text)

    return whole, finite, word


def line_of(text: str, key: str) -> str:
    """Return "line 3, " where a key stands in a JSON text; empty if it is not there as written."""
    line = line_number(text, key)
    return f"line {line}, " if line else ""


def line_number(text: str, key: str) -> int:
    """Return the line, from 1, where a key stands in a JSON text; 0 if it is not there."""
    match = re.search(rf'"{re.escape(key)}"\s*:', text)
    return text.count("\n", 0, match.start()) + 1 if match else 0
