"""Pooling layers of image networks."""

from symbolic_cost.layers.conv import Maps, Padding, Trail
from symbolic_cost.ops.conv import pool
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Pool:
    """A maximum or mean over square windows.

    Args:
        function: "max_pool" or "avg_pool".
        stride: step between positions.
    """

    function: str
    kernel: int
    stride: int
    padding: Padding = 0

    def declare(self, name: str, trail: Trail) -> None:
        positions, window = trail.windows(name, self.kernel, self.stride, self.padding)
        _reduce(name, trail, self.function, positions, window)


@dataclass(frozen=True)
class AdaptiveMean:
    """A mean over windows that leave maps of a given side."""

    side: int

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the pooling; windows overlap where the sides do not divide."""
        lengths = [trail.length(axis) for axis in trail.at.axes[2:]]
        positions = tuple(trail.new_axis(letter, self.side) for letter in "yx")
        window = tuple(
            trail.new_axis(letter, -(-length // self.side))
            for letter, length in zip("st", lengths, strict=True)
        )
        _reduce(name, trail, "avg_pool", positions, window)


def _reduce(
    name: str, trail: Trail, function: str, positions: tuple[str, ...], window: tuple[str, ...]
) -> None:
    result = Maps(name, (*trail.at.axes[:2], *positions))
    trail.add(pool(name, f"{trail.at} -> {result}", function, " ".join(window)), result)
