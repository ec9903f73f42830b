"""Autoencoders of videos, by `_class_name`: Wan and Qwen-Image, HunyuanVideo."""

from functools import partial

from sympy import Expr, S

from symbolic_cost import symbols
from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.maps import Normed, Residual
from symbolic_cost.layers.unet import Block, attention
from symbolic_cost.layers.video import Later, Relaid, causal, framed
from symbolic_cost.models.build import Fields, Model, Shape, is_size
from symbolic_cost.models.diffusion.autoencoder import Coder, coded, middle
from symbolic_cost.models.diffusion.transformers import Sample, video
from symbolic_cost.models.diffusion.unet import modelled, trail_of
from symbolic_cost.records import dataclass

RMS = Normed("rms_norm", learned=("scale",))
UNIT = partial(Block, norm=RMS, conv=causal)
_TIME = (3, 1, 1)
"""A kernel of frames alone."""
_BEFORE = ((1, 0), (0, 0), (0, 0))
_CHUNK, _HALVED = 4, 2
"""Of Wan: frames that its code sees at a time, and how often it may halve them."""


def wan(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder of Wan, which sees four frames at a time behind the first."""
    patch = fields.optional_size("patch_size") or 1
    channels, out = (fields.size(f"{name}_channels", 3) for name in ("in", "out"))
    for name, number in (("in_channels", channels), ("out_channels", out)):
        problem = f"patches of {patch} do not divide it"
        fields.require(holds=number % patch**2 == 0, problem=problem, name=name)
    base = fields.size("base_dim", 96)
    wan = _Wan(
        Sample((480, 832), patch, max(channels // patch**2, 1), symbols.l, (81, 1)),
        (channels, out),
        (base, fields.optional_size("decoder_base_dim") or base),
        residual=fields.flag("is_residual", default=False),
    )
    return wan.model(fields, shape)


def qwen_image(fields: Fields, shape: Shape) -> Model:
    """Declare the autoencoder of Qwen-Image: that of Wan, which sees one frame."""
    channels, base = fields.size("input_channels", 3), fields.size("base_dim", 96)
    usual = Sample((1024, 1024), 1, channels, symbols.l, (1, 1))
    return _Wan(usual, (channels, channels), (base, base)).model(fields, shape)


@dataclass(frozen=True)
class _Wan:
    """An autoencoder whose blocks see no later frame, and attention no other one.

    Args:
        usual: what it sees unless the configuration says it.
        channels: that what encodes takes, and what decodes makes.
        bases: width of the first stage of either.
        residual: whether stages have a short cut of their own.
    """

    usual: Sample
    channels: tuple[int, int]
    bases: tuple[int, int]
    residual: bool = False

    def model(self, fields: Fields, shape: Shape) -> Model:
        image = video(fields, shape, self.usual)
        latent, depth = fields.size("z_dim", 16), fields.size("num_res_blocks", 2)
        factors, timed = self._stages(fields, image)
        if self.residual and not fields.problems:
            self._short_cuts(fields, factors, timed)
        fields.refuse()
        trail = trail_of(image, shape, moving=True)
        wide, wider = (tuple(base * factor for factor in factors) for base in self.bases)
        down = self._coder(wide, depth, timed, wide[-1], down=True)
        up = self._coder(wider[::-1], depth + 1, timed[::-1], wider[-1], down=False)
        encoder, decoder = down.encoder(2 * latent), up.decoder(self.channels[1])
        if image.patch > 1:
            patches = Relaid(_sides(S.One / image.patch), self.channels[0])
            pixels = Relaid(_sides(image.patch), self.channels[1] // image.patch**2)
            encoder = Chain({"patches": patches, **encoder.layers})
            decoder = Chain({**decoder.layers, "pixels": pixels})
        quants = Conv(2 * latent, 1), Conv(latent, 1)
        coded(encoder, decoder, latent, quants).declare("", trail)
        return modelled(fields, trail)

    def _stages(self, fields: Fields, image: Sample) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        """Read the widths of the stages, and which of them halve the frames."""
        factors = fields.items("dim_mult", (1, 2, 4, 4))
        fine = bool(factors) and all(map(is_size, factors))
        fields.require(holds=fine, problem="a list of sizes is accepted", name="dim_mult")
        last = len(factors) - 1
        timed = fields.items("temperal_downsample", (False, True, True))
        fine = len(timed) == last and all(isinstance(one, bool) for one in timed)
        problem = f"{last} flags, of which {_HALVED} at most are true, are accepted"
        fine = fine and sum(timed) <= _HALVED
        fields.require(holds=fine, problem=problem, name="temperal_downsample")
        problem = f"one frame, and {_CHUNK} at a time behind it, are accepted"
        fine = image.frames[0] % _CHUNK == 1
        fields.require(holds=fine, problem=problem, name="sample_frames")
        step = 2**last * image.patch
        problem = f"{last} stages halve sides that {step} divides"
        fine = not any(side % step for side in image.sides)
        fields.require(holds=fine, problem=problem, name="sample_size")
        return factors, timed

    def _short_cuts(
        self, fields: Fields, factors: tuple[int, ...], timed: tuple[bool, ...]
    ) -> None:
        """Note widths of which a short cut has no whole sums, or no whole copies."""
        steps = [4 * (2 if one else 1) for one in timed]
        down = [self.bases[0] * factor for factor in (1, *factors)]
        up = [self.bases[1] * factor for factor in (factors[-1], *factors[::-1])]
        sums = zip(down, down[1:], [*steps, 1], strict=False)
        copies = zip(up[1:], up, steps[::-1], strict=False)
        odd = [n for n, (a, b, step) in enumerate((*sums, *copies)) if a * step % b]
        problem = "stages with a short cut need widths that divide each other's"
        fields.require(holds=not odd, problem=problem, name="dim_mult")

    def _coder(
        self, widths: tuple[int, ...], depth: int, timed: tuple[bool, ...], mid: int, *, down: bool
    ) -> Coder:
        def between(i: int, width: int) -> dict[str, Layer]:
            if i == len(timed):
                return {}
            if down:
                fewer = Chain({"conv": Conv(width, _TIME, (2, 1, 1), _BEFORE)})
                halved = {"time": Later(fewer)} if timed[i] else {}
                return {"shrink": framed(width, 3, 2, (0, 1)), **halved}
            more = Conv(2 * width, _TIME, 1, ((2, 0), (0, 0), (0, 0)))
            wider = Chain({"conv": more, "laid": Relaid((2, 1, 1), width)})
            return {
                **({"time": Later(wider)} if timed[i] else {}),
                "grow": Relaid(_sides(2), function="interpolate"),
                "conv": framed(width if self.residual else width // 2, 3),
            }

        def around(i: int, stage: Chain) -> Layer:
            ends = i == len(timed)
            if not self.residual or (ends and not down):
                return stage
            factor = S.Half if down else 2
            by = (S.One,) * 3 if ends else (factor if timed[i] else 1, factor, factor)
            return Residual(stage, Chain({"laid": Relaid(by, widths[i], "sum", still=1)}))

        seen = middle(UNIT, mid, attention(1, RMS, apart=True))
        ended = RMS, Activation("silu")
        depths = (depth,) * len(widths)
        start = self.bases[0] if down else 0
        return Coder(widths, depths, between, seen, UNIT, causal, ended, around, start)


def _sides(by: Expr | int) -> tuple[Expr | int, ...]:
    return (1, by, by)
