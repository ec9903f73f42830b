"""The wire format of protocol buffers: fields of a message, nothing copied, nothing executed.

A field is a number and a wire type, then a varint, 4 or 8 bytes, or a length and as many bytes.
Source: protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from symbolic_cost.errors import InputError

Field: TypeAlias = tuple[int, int | memoryview]

MOST_FIELDS = 5_000_000
"""Fields of the longest file that is read; one of 32 layers has 0.3 million."""

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_MOST_BITS = 64
_SIGN = 1 << 63


class Wire:
    """Reads messages of one file.

    Args:
        place: how errors name the file.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._left = MOST_FIELDS

    def fields(self, message: int | memoryview) -> Iterator[Field]:
        """Yield the fields of a message in order.

        Raises:
            InputError: bytes that are no message, or too many fields.
        """
        if isinstance(message, int):
            raise self.refusal("a number stands where a message is expected")
        at, end = 0, len(message)
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise self.refusal(f"has more than {MOST_FIELDS} fields")
            key, at = self._varint(message, at)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, at = self._varint(message, at)
                yield number, value
                continue
            if kind == _BYTES:
                length, at = self._varint(message, at)
            else:
                length = {_EIGHT: 8, _FOUR: 4}.get(kind, -1)
            if not 0 <= length <= end - at or not number:
                raise self.refusal(
                    f"a field is cut off or damaged, {end - at} bytes before its end"
                )
            yield number, message[at : at + length]
            at += length

    def read(
        self, message: int | memoryview, fields: Mapping[int, Callable[[Any], Any]]
    ) -> dict[int, list[Any]]:
        """Return what some fields of a message hold, as each is read, in order; others pass."""
        held: dict[int, list[Any]] = {number: [] for number in fields}
        for number, value in self.fields(message):
            if number in fields:
                held[number].append(fields[number](value))
        return held

    def _varint(self, message: memoryview, at: int) -> tuple[int, int]:
        value = shift = 0
        while at < len(message) and shift < _MOST_BITS:
            byte = message[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follow
                return value, at
        raise self.refusal("a number is cut off")

    def refusal(self, said: str) -> InputError:
        """Return the refusal of a file."""
        return InputError(f"{self.place}: is no ONNX model: {said}")

    def text(self, value: int | memoryview, most: int = 4_000) -> str:
        """Return a text; what is longer than most is no name."""
        if isinstance(value, int) or len(value) > most:
            raise self.refusal(f"a name of at most {most} bytes is accepted")
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            raise self.refusal("a name is not UTF-8") from None

    def varints(self, value: int | memoryview, most: int) -> list[int]:
        """Return whole numbers, packed or one alone."""
        if isinstance(value, int):
            return [signed(value)]
        numbers: list[int] = []
        at = 0
        while at < len(value):
            if len(numbers) >= most:
                raise self.refusal(f"at most {most} numbers are read of a tensor")
            number, at = self._varint(value, at)
            numbers.append(signed(number))
        return numbers


def signed(value: int) -> int:
    """Return a whole number of 64 bits with its sign."""
    return value - 2 * _SIGN if value >= _SIGN else value


def plain(value: int | memoryview) -> int | memoryview:
    """Return what a field holds, unread."""
    return value


def last_integer(values: Sequence[int | memoryview]) -> int:
    """Return the last whole number of a field; zero where there is none."""
    return next((value for value in reversed(values) if isinstance(value, int)), 0)


def last(values: Sequence[str]) -> str:
    """Return the last text of a field that is not empty; an empty one where there is none."""
    return next(filter(None, reversed(values)), "")
