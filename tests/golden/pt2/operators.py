"""Export modules of a few operators each, and count them with PyTorch at two further sizes.

    python tests/golden/pt2/operators.py tests/golden/pt2/operators.zip [NAME ...]

writes NAME.pt2 and truth.json into the archive; with names, the others stay. Needs torch.
"""

import json
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import Dim, export, save
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

SIZES = ((3, 24), (2, 40))
_STAMP = (2026, 1, 1, 0, 0, 0)
_DROPPED = {"stack_trace", "torch_fn", "source_fn_stack", "guards_code", "strides", "hint"}

MODULES: dict[str, tuple[type[nn.Module], Callable[..., Any], tuple[dict[int, str], ...], str]] = {}


def module(
    inputs: Callable[[int, int], tuple[torch.Tensor, ...]], *dims: dict[int, str], how: str = ""
) -> Callable[[type[nn.Module]], type[nn.Module]]:
    """Register a module; how it is exported: "decomposed", or "untold" without its history."""

    def add(made: type[nn.Module]) -> type[nn.Module]:
        name = "".join("_" * c.isupper() + c.lower() for c in made.__name__).lstrip("_")
        MODULES[name] = (made, inputs, dims, how)
        return made

    return add


def rows(width: int = 32) -> Callable[[int, int], tuple[torch.Tensor, ...]]:
    return lambda b, l: (torch.randn(b, l, width),)


BATCH, LENGTH = {0: "b"}, {0: "b", 1: "l"}


class _Block(nn.Module):
    """Attention with two key heads, a gated perceptron, and what gets no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(32, 32), nn.Linear(32, 16)
        self.values, self.out = nn.Linear(32, 16), nn.Linear(32, 32, bias=False)
        self.up, self.down = nn.Linear(32, 48), nn.Linear(48, 32)
        self.norm, self.conv = nn.LayerNorm(32), nn.utils.parametrizations.weight_norm(
            nn.Conv1d(32, 32, 3, padding=1, groups=2)
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, l, _ = x.shape
        q = self.queries(x).view(b, l, 4, 8).transpose(1, 2)
        k, v = (
            one(x).view(b, l, 2, 8).transpose(1, 2).repeat_interleave(2, 1)
            for one in (self.keys, self.values)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.out(y.transpose(1, 2).reshape(b, l, 32))
        y = x + self.norm(y)
        return y + self.down(nn.functional.silu(self.up(y))) + self.conv(y.mT).mT


@module(rows(), LENGTH)
class Plain(_Block):
    """The block."""


@module(rows(), LENGTH, how="decomposed")
class Decomposed(_Block):
    """The block after run_decompositions()."""


class _Stopped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            held = self.one(x)
        return self.three(self.two(x + held).detach() + self.two(held))


@module(rows(), LENGTH, how="decomposed")
class Stops(_Stopped):
    """Neither detach nor gradients off is a node of it any more."""


@module(rows(), LENGTH, how="emptied")
class StopsInPart(_Stopped):
    """Decomposed by an empty table, which leaves detach and writes gradients off out."""


@module(rows(), LENGTH, how="untold")
class StopsUntold(_Stopped):
    """Decomposed, and nothing says so: every gradient is counted."""


class _Three(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three = (nn.Linear(32, 32) for _ in range(3))


@module(rows(), LENGTH)
class Letters(_Three):
    """Three dots, several factors, and results that are not written."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            one(x).unflatten(-1, (4, 8)).transpose(1, 2) for one in (self.one, self.two, self.three)
        )
        a = torch.einsum("...qk,...tk->...qt", q, k).softmax(-1)
        y = torch.einsum("...qt,...tk", a, v).mT  # letters in order: ...kq
        y = y.transpose(1, 2).flatten(2)
        w = self.two.weight
        y = torch.einsum("bld,de,ef,fg->bge", y, self.one.weight[:, :12], w[:12, :20], w[:20, :8])
        return torch.einsum("bge,...->b", y, self.three.bias)


@module(rows(), LENGTH)
class Scattered(_Three):
    """Writing in place at indices, and order."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.one(x)
        order = torch.argsort(y.sum(-1), -1)
        y = torch.gather(y, 1, order[..., None].expand_as(y))
        where = (y.argmax(-1) % 4)[..., None].expand_as(y)
        z = torch.zeros(y.shape[0], 4, 32)
        z.scatter_add_(1, where, self.two(y))
        z = z.scatter_reduce(1, where, y, "sum").clone()
        return self.three(z.index_add_(1, torch.arange(4), y[:, :4]))


@module(rows(), LENGTH)
class Rounded(_Three):
    """Weights in steps, whose gradient goes straight through; integers with learnt scales."""

    def __init__(self) -> None:
        super().__init__()
        held = torch.randint(-8, 8, (32, 32), dtype=torch.int8)
        self.held = nn.Parameter(held, requires_grad=False)
        self.scale = nn.Parameter(torch.rand(32, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.one.weight
        y = nn.functional.linear(x, w + (torch.round(w / 0.1) * 0.1 - w).detach())
        y = nn.functional.linear(self.two(y), self.held.to(x.dtype) * self.scale)
        return self.three(y.floor() + y.sign())


@module(rows(), BATCH)
class Projected(nn.Module):
    """A recurrence whose states are projected, and one from states that are learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.LSTM(32, 24, 2, batch_first=True, proj_size=12, bidirectional=True)
        self.two, self.first = nn.GRU(24, 20, batch_first=True), nn.Linear(24, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.one(x)
        made, _ = self.two(y, self.first(y.mean(1))[None])
        return made


@module(rows(), BATCH)
class Spectrum(_Three):
    """Filters of complex numbers that are learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Parameter(torch.randn(9, 32, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.fft.rfft(self.one(x), dim=1)
        y = torch.fft.irfft(y * torch.view_as_complex(self.filters), n=16, dim=1)
        return self.two(torch.fft.fftshift(y, dim=1))


@module(lambda b, l: (torch.randn(b, 3, 16, 16),), BATCH)  # noqa: ARG005 - no length
class Deformed(nn.Module):
    """Positions that are learnt, at which maps are read."""

    def __init__(self) -> None:
        super().__init__()
        self.maps, self.places = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(3, 2, 5, padding=2)
        self.out = nn.Conv2d(8, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        at = self.places(x).permute(0, 2, 3, 1).tanh()
        return self.out(nn.functional.grid_sample(self.maps(x), at, align_corners=False))


@module(rows(), LENGTH)
class Forms(nn.Module):
    """Bilinear forms, distances and outer products, of which PyTorch's counter sees nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(32, 32), nn.Linear(32, 16)
        self.form, self.own = nn.Bilinear(32, 16, 12), nn.Bilinear(32, 32, 12, bias=False)
        self.codes = nn.Parameter(torch.randn(20, 12))
        self.left, self.right = nn.Parameter(torch.randn(20)), nn.Parameter(torch.randn(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.form(self.one(x), self.two(x)) + self.own(x, x)
        far = torch.cdist(y, self.codes, compute_mode="donot_use_mm_for_euclid_dist")
        near = torch.cdist(y[:, :7], self.codes) + torch.cdist(y, y, p=1.0)[:, :7, :1]
        codes = torch.addr(self.codes, self.left, self.right)
        return far.softmax(-1) @ codes, near


@module(rows(), LENGTH, how="decomposed")
class FormsDecomposed(Forms):
    """The same, decomposed."""


@module(rows(), LENGTH)
class Angles(nn.Module):
    """Complex numbers of two parts, and diagonals of products."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(32, 32), nn.Linear(32, 32)
        self.speeds = nn.Parameter(torch.randn(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turns = torch.arange(x.shape[1])[:, None] * self.speeds
        turned = torch.polar(torch.ones_like(turns), turns)
        y = torch.view_as_complex(self.one(x).unflatten(-1, (16, 2))) * turned
        z = torch.complex(y.real, self.two(x)[..., :16])
        scores = torch.einsum("bid,bjd->bij", z.real, z.imag)
        return torch.einsum("bii,bid->bd", scores, self.two(x)), torch.einsum("bii->b", scores)


@module(rows(), LENGTH, how="decomposed")
class Repeated(nn.Module):
    """Weights on both sides of a product, repeated for every sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(5, 32))
        self.one, self.two = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.one(self.queries.expand(x.shape[0], -1, -1))
        return nn.functional.scaled_dot_product_attention(q, self.two(x), x)


@module(rows(), LENGTH)
class Distances(nn.Module):
    """Distances of any number of rows, for which PyTorch takes products from 26 rows on."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cdist(self.one(x), x[..., :8], compute_mode="use_mm_for_euclid_dist")


def exported(name: str) -> tuple[bytes, dict[str, Any]]:
    """Return the archive of a module, and its counts."""
    torch.manual_seed(0)
    made, inputs, dims, how = MODULES[name]
    own = made().eval()
    known = {"b": Dim("b", min=2, max=64), "l": Dim("l", min=9, max=64)}
    shapes = tuple({place: known[letter] for place, letter in one.items()} for one in dims)
    program = export(own, inputs(2, 16), dynamic_shapes=shapes, strict=False)
    if how:
        program = program.run_decompositions({} if how == "emptied" else None)
    buffer = BytesIO()
    save(program, buffer)
    dropped = _DROPPED | ({"from_node"} if how == "untold" else set())
    sizes = [{"b": b, "l": l if any("l" in one.values() for one in dims) else 16} for b, l in SIZES]
    counts = [size | _counted(own, inputs(size["b"], size["l"])) for size in sizes]
    params = sum(p.numel() for p in own.parameters())
    return _lean(buffer.getvalue(), dropped), {"params": params, "sizes": counts}


def _counted(own: nn.Module, inputs: tuple[torch.Tensor, ...]) -> dict[str, int]:
    with sdpa_kernel(SDPBackend.MATH):
        with FlopCounterMode(display=False) as forward:
            made = own(*inputs)
        with FlopCounterMode(display=False) as backward:
            results = made if isinstance(made, tuple) else (made,)
            learnt = [r for r in results if r.requires_grad]
            if learnt:
                sum(r.abs().float().sum() for r in learnt).backward()
    flops = forward.get_total_flops()
    return {"flops_fwd": flops, "flops_train": flops + backward.get_total_flops()}


def _lean(archive: bytes, dropped: set[str]) -> bytes:
    """Return an archive without weights, samples and traces."""
    source, made = zipfile.ZipFile(BytesIO(archive)), BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for name in source.namelist():
            if "/data/weights/weight_" in name or "/data/constants/tensor_" in name:
                continue
            data = source.read(name)
            if name.endswith("model.pt"):
                continue
            if name.endswith(".json"):
                data = json.dumps(_plain(json.loads(data), dropped), separators=(",", ":")).encode()
            target.writestr(zipfile.ZipInfo(name, _STAMP), data, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _plain(value: Any, dropped: set[str]) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v, dropped) for k, v in value.items() if k not in dropped}
    return [_plain(item, dropped) for item in value] if isinstance(value, list) else value


def main() -> None:
    path = Path(sys.argv[1])
    kept: dict[str, bytes] = {}
    if path.exists():
        with zipfile.ZipFile(path) as before:
            kept = {name: before.read(name) for name in before.namelist()}
    truth = json.loads(kept.pop("truth.json", b"{}"))
    for name in sys.argv[2:] or MODULES:
        kept[f"{name}.pt2"], truth[name] = exported(name)
    kept["truth.json"] = json.dumps(truth, indent=1, sort_keys=True).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name in sorted(kept):
            target.writestr(zipfile.ZipInfo(name, _STAMP), kept[name], zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
