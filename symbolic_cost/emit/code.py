"""Programs as source code of other languages: one file without dependencies, its tests inside.

The steps are those that floats take in this library (`program.tape`), so that results differ from
it by the last bits of a language's logarithm and power of two alone, where these occur.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.program.scalars import rounded
from symbolic_cost.program.tape import Tape
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass

Example = tuple[tuple[float, ...], tuple[float, ...]]
"""Arguments and results."""


@dataclass(frozen=True)
class Source:
    """What is written.

    Args:
        name: of the function.
        tape: its steps.
        about: lines for the head: what it is of, conventions, version.
        meanings: of the inputs, by name.
        units: of the outputs, by name.
        tests: inputs and exact results rounded once, in the order of inputs and outputs.
        tolerance: relative, of the tests.
    """

    name: str
    tape: Tape
    about: Sequence[str]
    meanings: Mapping[str, str]
    units: Mapping[str, str]
    tests: Sequence[Example]
    tolerance: float = 1e-12

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the arguments, as identifiers."""
        return tuple(map(identifier, self.tape.inputs))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results, as identifiers."""
        return tuple(map(identifier, self.tape.outputs))


@dataclass(frozen=True)
class Language:
    """How a language writes a program.

    Args:
        ending: of its files.
        comment: what stands before every line of the head.
        steps: patterns of the operations that differ from the common ones.
        define: pattern of one step, of name and expression.
        write: the whole file, of the source, its head and its steps.
    """

    ending: str
    comment: str
    steps: Mapping[str, str]
    define: str
    write: Callable[[Source, str, str], str]


def source(what: Source, language: str) -> str:
    """Return a program as the text of one file.

    Raises:
        UnknownNameError: no such language.
        InputError: two names that are one identifier, or a name that the language keeps for itself.
    """
    chosen, words = looked_up("language", language, LANGUAGES), _WORDS[language].split()
    names = (what.name, *what.inputs, *what.outputs)
    problems = [
        f"{name!r} is two names of the function" for name in set(names) if names.count(name) > 1
    ]
    problems += [f"{name!r} is a word of {language}" for name in names if name in words]
    if problems:
        raise InputError(problems)
    patterns = {**_COMMON, **chosen.steps}
    head = "\n".join(f"{chosen.comment} {line}".rstrip() for line in _head(what))
    body = "\n".join(_steps(what, patterns, chosen.define))
    return chosen.write(what, head, body)


def identifier(name: str) -> str:
    """Return a name that all languages take.

    >>> identifier("bubble fraction"), identifier("d step/d m1")
    ('bubble_fraction', 'd_step_d_m1')
    """
    plain = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_")
    return plain if plain[:1].isalpha() else f"x{plain}"


def _head(what: Source) -> Iterator[str]:
    yield from what.about
    yield ""
    yield "Arguments, numbers above zero:"
    yield from (f"  {identifier(name)}: {what.meanings[name]}" for name in what.tape.inputs)
    yield "Results:"
    yield from (f"  {identifier(name)} [{what.units[name]}]" for name in what.tape.outputs)


def _registers(what: Source) -> list[str]:
    constants = (f"({number!r})" for number in map(rounded, what.tape.constants))
    return [*what.inputs, *constants]


def _steps(what: Source, patterns: Mapping[str, str], define: str) -> Iterator[str]:
    names = _registers(what)
    for place, (kind, taken) in enumerate(what.tape.steps):
        own = f"t{place}"
        expression = patterns[kind].format(*(names[one] for one in taken))
        yield define.format(own, expression)
        names.append(own)


def _results(what: Source) -> list[tuple[str, str]]:
    names = _registers(what)
    names += [f"t{place}" for place in range(len(what.tape.steps))]
    return [(identifier(name), names[place]) for name, place in what.tape.outputs.items()]


_COMMON = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "inv": "1.0 / {0}",
    "max": "({0} >= {1} ? {0} : {1})",
    "min": "({0} <= {1} ? {0} : {1})",
    "ge": "({0} >= {1} ? 1.0 : 0.0)",
    "gt": "({0} > {1} ? 1.0 : 0.0)",
    "select": "({0} != 0.0 ? {1} : {2})",
    "ceil": "ceil({0})",
    "floor": "floor({0})",
    "sqrt": "sqrt({0})",
    "log2": "log2({0})",
    "exp2": "exp2({0})",
}


# ---------------------------------------------------------------------- Python


def _vectors(what: Source, opened: str, closed: str, *, indent: str = "    ") -> str:
    """Return the tests as one list of inputs and results each."""

    def listed(numbers: Sequence[float]) -> str:
        return opened + ", ".join(map(repr, map(float, numbers))) + closed

    rows = (f"{indent}{opened}{listed(x)}, {listed(y)}{closed}," for x, y in what.tests)
    return "\n".join(rows)


_PYTHON = {
    "max": "{0} if {0} >= {1} else {1}",
    "min": "{0} if {0} <= {1} else {1}",
    "ge": "1.0 if {0} >= {1} else 0.0",
    "gt": "1.0 if {0} > {1} else 0.0",
    "select": "{1} if {0} else {2}",
    "div": "{0} / {1} if {1} else {0} * _INFINITE",
    "inv": "1.0 / {0} if {0} else _INFINITE",
    "ceil": "float(math.ceil({0}))",
    "floor": "float(math.floor({0}))",
    "sqrt": "math.sqrt({0})",
    "log2": "math.log2({0})",
    "exp2": "2.0 ** ({0})",
}


def _python(what: Source, head: str, body: str) -> str:
    results = ", ".join(f'"{name}": {value}' for name, value in _results(what))
    named = ", ".join(f'"{name}"' for name in what.outputs)
    return f"""{head}
import math

_INFINITE = math.inf


def {what.name}({", ".join(what.inputs)}):
{body}
    return {{{results}}}


_TESTS = [
{_vectors(what, "(", ")")}
]


def _check():
    for inputs, expected in _TESTS:
        found = {what.name}(*inputs)
        for name, value in zip(({named},), expected):
            if abs(found[name] - value) > {what.tolerance!r} * abs(value):
                raise SystemExit(f"{{name}} of {{inputs}} is {{found[name]!r}}, not {{value!r}}")
    print(f"{{len(_TESTS)}} tests passed")


if __name__ == "__main__":
    _check()
"""


# ---------------------------------------------------------------------- C


def _c(what: Source, head: str, body: str) -> str:
    fields = "\n".join(f"    double {name};" for name in what.outputs)
    results = "\n".join(f"    result.{name} = {value};" for name, value in _results(what))
    passed = ", ".join(f"one[{place}]" for place in range(len(what.inputs)))
    members = ", ".join(f"found.{name}" for name in what.outputs)
    width = len(what.inputs) + len(what.outputs)
    rows = "\n".join(
        "    {" + ", ".join(map(repr, map(float, (*x, *y)))) + "}," for x, y in what.tests
    )
    return f"""{head}
// Compile with -ffp-contract=off; with -DCOST_TEST the file is its own test.
#include <math.h>

typedef struct {{
{fields}
}} {what.name}_result;

{what.name}_result {what.name}({", ".join(f"double {name}" for name in what.inputs)}) {{
{body}
    {what.name}_result result;
{results}
    return result;
}}

#ifdef COST_TEST
#include <stdio.h>

static const double tests[][{width}] = {{
{rows}
}};

int main(void) {{
    int count = (int)(sizeof tests / sizeof tests[0]);
    for (int i = 0; i < count; i++) {{
        const double *one = tests[i];
        {what.name}_result found = {what.name}({passed});
        double results[] = {{{members}}};
        for (int j = 0; j < {len(what.outputs)}; j++) {{
            double expected = one[{len(what.inputs)} + j];
            if (fabs(results[j] - expected) > {what.tolerance!r} * fabs(expected)) {{
                printf("test %d, result %d: %.17g, not %.17g\\n", i, j, results[j], expected);
                return 1;
            }}
        }}
    }}
    printf("%d tests passed\\n", count);
    return 0;
}}
#endif
"""


# ---------------------------------------------------------------------- JavaScript


_JAVASCRIPT = {kind: f"Math.{kind}({{0}})" for kind in ("ceil", "floor", "sqrt", "log2")} | {
    "exp2": "Math.pow(2, {0})"
}


def _javascript(what: Source, head: str, body: str) -> str:
    results = ", ".join(f"{name}: {value}" for name, value in _results(what))
    named = ", ".join(f'"{name}"' for name in what.outputs)
    return f"""{head}
function {what.name}({", ".join(what.inputs)}) {{
{body}
  return {{ {results} }};
}}

const tests = [
{_vectors(what, "[", "]", indent="  ")}
];

function check() {{
  for (const [inputs, expected] of tests) {{
    const found = {what.name}(...inputs);
    [{named}].forEach((name, j) => {{
      if (Math.abs(found[name] - expected[j]) > {what.tolerance!r} * Math.abs(expected[j])) {{
        throw new Error(`${{name}} of ${{inputs}} is ${{found[name]}}, not ${{expected[j]}}`);
      }}
    }});
  }}
  return `${{tests.length}} tests passed`;
}}

if (typeof module !== "undefined") {{
  module.exports = {{ {what.name}, check }};
  if (require.main === module) console.log(check());
}}
"""


# ---------------------------------------------------------------------- Rust


_RUST = {
    "max": "if {0} >= {1} {{ {0} }} else {{ {1} }}",
    "min": "if {0} <= {1} {{ {0} }} else {{ {1} }}",
    "ge": "if {0} >= {1} {{ 1.0 }} else {{ 0.0 }}",
    "gt": "if {0} > {1} {{ 1.0 }} else {{ 0.0 }}",
    "select": "if {0} != 0.0 {{ {1} }} else {{ {2} }}",
    **{kind: f"f64::{kind}({{0}})" for kind in ("ceil", "floor", "sqrt", "log2", "exp2")},
}


def _rust(what: Source, head: str, body: str) -> str:
    fields = "\n".join(f"    pub {name}: f64," for name in what.outputs)
    results = ", ".join(f"{name}: {value}" for name, value in _results(what))
    kind = "".join(part.capitalize() for part in what.name.split("_"))
    passed = ", ".join(f"x[{place}]" for place in range(len(what.inputs)))
    members = ", ".join(f"found.{name}" for name in what.outputs)
    widths = f"([f64; {len(what.inputs)}], [f64; {len(what.outputs)}])"
    rows = "\n".join(
        f"    ({list(map(float, x))!r}, {list(map(float, y))!r})," for x, y in what.tests
    )
    return f"""{head}
#![allow(non_snake_case, unused_parens, clippy::all)]

pub struct {kind} {{
{fields}
}}

pub fn {what.name}({", ".join(f"{name}: f64" for name in what.inputs)}) -> {kind} {{
{body}
    {kind} {{ {results} }}
}}

#[cfg(test)]
const TESTS: &[{widths}] = &[
{rows}
];

#[test]
fn check() {{
    for (x, expected) in TESTS {{
        let found = {what.name}({passed});
        for (value, wanted) in [{members}].iter().zip(expected.iter()) {{
            assert!((value - wanted).abs() <= {what.tolerance!r} * wanted.abs(), "{{:?}}", x);
        }}
    }}
}}
"""


# ---------------------------------------------------------------------- Julia


def _julia(what: Source, head: str, body: str) -> str:
    results = ", ".join(f"{name} = {value}" for name, value in _results(what))
    return f"""{head}
function {what.name}({", ".join(what.inputs)})
{body}
    return (; {results})
end

const TESTS = [
{_vectors(what, "(", ",)")}
]

function check()
    for (inputs, expected) in TESTS
        for (value, wanted) in zip({what.name}(inputs...), expected)
            abs(value - wanted) <= {what.tolerance!r} * abs(wanted) || error("$inputs: $value")
        end
    end
    println(length(TESTS), " tests passed")
end

if abspath(PROGRAM_FILE) == @__FILE__
    check()
end
"""


LANGUAGES: Mapping[str, Language] = {
    "python": Language(".py", "#", _PYTHON, "    {0} = {1}", _python),
    "c": Language(".c", "//", {}, "    const double {0} = {1};", _c),
    "javascript": Language(".js", "//", _JAVASCRIPT, "  const {0} = {1};", _javascript),
    "rust": Language(".rs", "//", _RUST, "    let {0}: f64 = {1};", _rust),
    "julia": Language(".jl", "#", {}, "    {0} = {1}", _julia),
}
"""Every language by name."""

_WORDS: Mapping[str, str] = package_data("emit/words.toml")
