"""What a test of a shell script says: true, false, or None where it needs more than the script."""

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from operator import eq, ge, gt, le, lt, ne

Truth = bool | None
"""True, false, or None where it is not known."""

Known = Callable[[str], str | None]
"""Gives a text with the values of its variables, or None where one is not known."""

_PIECE = r"\"(?:\\.|[^\"\\])*\"|'[^']*'|\$\(\([^()]*\)\)|\$\{[^{}]*\}|\$\w+|\\.|[^\s\"'()&|;\\]"
_PIECES = re.compile(_PIECE)
_WORDS = re.compile(rf"\\\n|(?P<word>&&|\|\||[()&|;]|(?:{_PIECE})+)")
_NUMERIC: Mapping[str, Callable[[int, int], bool]] = {
    **dict.fromkeys(("-eq", "=="), eq),
    **dict.fromkeys(("-ne", "!="), ne),
    **dict.fromkeys(("-lt", "<"), lt),
    **dict.fromkeys(("-le", "<="), le),
    **dict.fromkeys(("-gt", ">"), gt),
    **dict.fromkeys(("-ge", ">="), ge),
}
_ARITHMETIC = re.compile(r"\(\((.+?)(==|!=|<=|>=|<|>)(.+?)\)\)", re.DOTALL)
_LITERAL = {"true": True, ":": True, "false": False}


def holds(text: str, known: Known) -> Truth:
    """Tell whether commands such as `[[ $A == b ]] && [ -n "$C" ]` succeed."""
    sums = _ARITHMETIC.fullmatch(text.strip(" \t\n;"))
    if sums is not None:
        sides = [known(f"$(({one.strip()}))") for one in (sums[1], sums[3])]
        return _compared(sides[0], sums[2], sides[1])
    words = [match["word"] for match in _WORDS.finditer(text) if match["word"]]
    while words and words[-1] == ";":
        words.pop()
    said, rest = _command(words, known)
    while rest and rest[0] in ("&&", "||"):
        both = rest[0] == "&&"
        more, rest = _command(rest[1:], known)
        said = all_of(said, more) if both else any_of(said, more)
    return None if rest else said


def matches(patterns: str, value: str | None, known: Known) -> Truth:
    """Tell whether a value is one of the patterns of a branch of case, as `8b|8B`."""
    said: Truth = False
    for pattern in patterns.strip().removeprefix("(").split("|"):
        said = any_of(said, _matched(value, pattern.strip(), known))
    return said


def _command(words: Sequence[str], known: Known) -> tuple[Truth, Sequence[str]]:
    """Return what the first command says, and the words behind it."""
    if words and words[0] == "!":
        said, rest = _command(words[1:], known)
        return inverse(said), rest
    closing = {"[[": "]]", "[": "]"}.get(words[0]) if words else None
    if closing is not None and closing in words:
        end = words.index(closing)
        return _inside(words[1:end], known, single=closing == "]"), words[end + 1 :]
    end = next((i for i, word in enumerate(words) if word in ("&&", "||", ";")), len(words))
    if words and words[0] == "test":
        return _inside(words[1:end], known, single=True), words[end:]
    return (_LITERAL.get(words[0]) if end == 1 else None), words[end:]


def _inside(words: Sequence[str], known: Known, *, single: bool) -> Truth:
    """Tell what stands in brackets; operators of the lowest precedence first."""
    for operators, joined in ((("||", "-o"), any_of), (("&&", "-a"), all_of)):
        if operators[single] in words and "(" not in words:
            at = words.index(operators[single])
            sides = (words[:at], words[at + 1 :])
            return joined(*(_inside(side, known, single=single) for side in sides))
    if words and words[0] == "!":
        return inverse(_inside(words[1:], known, single=single))
    return _asked(words, known, single=single)


def _asked(words: Sequence[str], known: Known, *, single: bool) -> Truth:
    """Tell what one question in brackets says."""
    values = [text_of(word, known, splits=single) for word in words]
    match list(words):
        case [_]:
            return None if values[0] is None else values[0] != ""
        case ["-n" | "-z" as asked, _]:
            return None if values[1] is None else (values[1] == "") is (asked == "-z")
        case [_, "=" | "==" | "!=" as sign, right]:
            same = _same(values, right, known, single=single)
            return inverse(same) if sign == "!=" else same
        case [_, sign, _] if sign in _NUMERIC and sign.startswith("-"):
            return _compared(values[0], sign, values[2])
    return None


def _same(values: Sequence[str | None], right: str, known: Known, *, single: bool) -> Truth:
    if single:  # a pattern would be names of files
        return None if None in (values[0], values[2]) else values[0] == values[2]
    return _matched(values[0], right, known)


def _matched(value: str | None, pattern: str, known: Known) -> Truth:
    own = text_of(pattern, known)
    if value is None or own is None:
        return None
    if not re.search(r"[*?\[]", own):
        return value == own
    if "\\" in pattern or ("$" in pattern and re.search(r"[*?\[]", pattern) is None):
        return None  # what is a pattern, and what a character of it
    bare = "".join(_escaped(one, known) for one in _PIECES.findall(pattern))
    return fnmatchcase(value, bare)


def _escaped(piece: str, known: Known) -> str:
    """Return a piece of a pattern, of which what is quoted stands for itself."""
    text = text_of(piece, known) or ""
    return re.sub(r"([*?\[])", r"[\1]", text) if piece[0] in "\"'" else text


def text_of(word: str, known: Known, *, splits: bool = False) -> str | None:
    """Return the text of a word without its quotes, if it is known.

    Args:
        word: as written.
        known: what is.
        splits: what stands for several words, or none, is not known.
    """
    texts = []
    for piece in _PIECES.findall(word):
        if piece[0] == "'":
            texts.append(piece[1:-1])
            continue
        text = known(piece[1:-1] if piece[0] == '"' else piece)
        if text is None or "\\" in piece:
            return None
        if splits and piece[0] == "$" and (not text or re.search(r"[\s*?\[]", text)):
            return None
        texts.append(text)
    return "".join(texts)


def _compared(left: str | None, sign: str, right: str | None) -> Truth:
    if left is None or right is None:
        return None
    if not (re.fullmatch(r"-?[0-9]{1,18}", left) and re.fullmatch(r"-?[0-9]{1,18}", right)):
        return None
    return _NUMERIC[sign](int(left), int(right))


def inverse(said: Truth) -> Truth:
    """Return the opposite of what is known."""
    return None if said is None else not said


def any_of(*said: Truth) -> Truth:
    """Tell whether one of several holds."""
    return True if True in said else None if None in said else False


def all_of(*said: Truth) -> Truth:
    """Tell whether all of several hold."""
    return False if False in said else None if None in said else True
