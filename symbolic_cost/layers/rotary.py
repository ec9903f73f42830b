"""Rotation of queries and keys by angles that depend on the position.

Axes: l positions, d head width, d_n its part without rotation, d_r its rotated part; the others
are given.
"""

from symbolic_cost.ops.declare import Op, axes, pointwise, view

AXES = axes("l token query, d width, d_n width, d_r latent")


def angles(width: str, precision: str = "") -> Op:
    """Declare the cosines and sines that all layers rotate by, over the rotated `width`.

    Args:
        width: axis of the rotated width.
        precision: ":single" for single precision whatever values are in.
    """
    result = f"@cos[l {width}]{precision}, @sin[l {width}]{precision}"
    return pointwise("angles", f"!places[l]:index -> {result}", "angles")


def rotation(name: str, tensor: str, result: str, width: str) -> Op:
    """Declare a rotation: `rotation("rotate_k", "k[b l k d]", "turned[b l k d]", "d")`."""
    turned = f"{tensor}, !@cos[l {width}], !@sin[l {width}] -> {result}"
    return pointwise(name, turned, "rotary")


def partial_rotation(name: str, tensor: str, result: str, axes: str) -> tuple[Op, ...]:
    """Declare a rotation of d_r of the d = d_n + d_r elements of a head; the rest passes by."""
    plain, turned, rest = (f"{result}_{part}" for part in ("plain", "turned", "rest"))
    return (
        view(f"{name}_part", f"{tensor}[{axes} d] -> {plain}[{axes} d_r]"),
        view(f"{name}_rest", f"{tensor}[{axes} d] -> {rest}[{axes} d_n]"),
        rotation(name, f"{plain}[{axes} d_r]", f"{turned}[{axes} d_r]", "d_r"),
        pointwise(
            f"{name}_join",
            f"{rest}[{axes} d_n], {turned}[{axes} d_r] -> {result}[{axes} d]",
            "copy",
            laid="d_n d_r",
        ),
    )
