"""The wire format of protocol buffers, written: fields of a message one after the other.

A field is a key, its number times eight plus its wire type, then a varint (type 0), or a length as
a varint and as many bytes (type 2). A varint has seven bits in a byte, the lowest first; the eighth
says that more follow. For example 300 is AC 02.
Source: protobuf.dev/programming-guides/encoding.
"""

_BITS = 7
_MORE = 1 << _BITS


def varint(number: int) -> bytes:
    """Return an integer from 0 on.

    >>> varint(300).hex()
    'ac02'
    """
    data = bytearray()
    while number >= _MORE:
        data.append(number % _MORE | _MORE)
        number >>= _BITS
    return bytes([*data, number])


def field(number: int, value: int | str | bytes) -> bytes:
    """Return a field: an integer from 0 on, a text or a message.

    >>> field(1, "ab").hex()
    '0a026162'
    """
    if isinstance(value, int):
        return varint(8 * number) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(8 * number + 2) + varint(len(data)) + data


def packed(number: int, values: tuple[int, ...]) -> bytes:
    """Return a field of repeated integers; nothing where there are none."""
    return field(number, b"".join(map(varint, values))) if values else b""


def framed(message: bytes) -> bytes:
    """Return a message with its length before it, as files of many messages have it."""
    return varint(len(message)) + message
