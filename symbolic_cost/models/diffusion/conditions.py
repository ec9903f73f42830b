"""What conditions a UNet: a time step, vectors that are embedded with it, and a prompt."""

from collections.abc import Mapping

from symbolic_cost.layers.conv import Maps, Trail
from symbolic_cost.models.diffusion.transformers import Sample
from symbolic_cost.models.fields import Fields
from symbolic_cost.ops.declare import Role, einsum, lookup, pointwise

Vector = tuple[str, int, str]
"""A vector of a sample: its name, its width, and how it is embedded."""


def time_of(fields: Fields, first: int) -> tuple[int, list[Vector]]:
    """Read the width of the time step's embedding, and the vectors that are embedded with it."""
    fields.text("time_embedding_type", "positional", ("positional",))
    width = fields.optional_size("time_embedding_dim") or 4 * first
    vectors: list[Vector] = [("step", first, "two")]
    value = fields.source.values.get
    wide = "projection_class_embeddings_input_dim"
    kind = value("class_embed_type")
    if kind is not None:
        kind = fields.text("class_embed_type", "projection", tuple(_VECTORS))
        fields.ignore("num_class_embeds")
        size = first if kind == "timestep" else fields.size(wide)
        vectors.append(("label", size, _VECTORS[kind]))
    elif value("num_class_embeds") is not None:
        vectors.append(("label", fields.size("num_class_embeds"), "table"))
    if value("addition_embed_type") is not None:
        fields.text("addition_embed_type", "text_time", ("text_time",))
        fields.size("addition_time_embed_dim")
        vectors.append(("added", fields.size(wide), "two"))
    fields.ignore("addition_time_embed_dim", "addition_embed_type_num_heads", wide)
    return width, vectors


_VECTORS: Mapping[str, str] = {"projection": "two", "timestep": "two", "simple_projection": "one"}


def text_of(fields: Fields, width: int) -> int:
    """Read the width of what the prompt is projected from; its own if it is not."""
    wide = fields.optional_size("encoder_hid_dim")
    if fields.source.values.get("encoder_hid_dim_type") is not None:
        fields.text("encoder_hid_dim_type", "text_proj", ("text_proj",))
        fields.require(holds=wide is not None, problem="a width is needed", name="encoder_hid_dim")
    return wide or -width


def embed(trail: Trail, width: int, vectors: list[Vector], function: str, guided: int) -> None:
    """Declare the embedding of a time step and of other vectors, aside."""
    before = Maps("", ())
    for name, size, how in vectors:
        first, last = trail.new_axis("c", size), trail.new_axis("c", width, Role.HIDDEN)
        embedded = Maps(f"{name}.embedded", ("b", last))
        if how == "table":
            pattern = f"!{name}[b]:index, *table[{first} {last}] -> {embedded}"
            trail.ops.append(lookup(f"{name}.embed", pattern))
        else:
            bias = f"*w[{first} {last}] + *bias[{last}]"
            result = embedded if how == "one" else Maps(f"{name}.u", ("b", last))
            entry = f"!{name}[b {first}]"
            if guided and name == vectors[0][0]:
                entry = _guided(trail, guided, entry)
            trail.ops.append(einsum(f"{name}.linear_1", f"{entry}, {bias} -> {result}"))
        if how == "two":
            wide = trail.new_axis("c", width, Role.HIDDEN)
            act, embedded = Maps(f"{name}.a", ("b", last)), Maps(f"{name}.embedded", ("b", wide))
            weight = f"*w[{last} {wide}] + *bias[{wide}]"
            trail.ops += [
                pointwise(f"{name}.act", f"{result} -> {act}", function),
                einsum(f"{name}.linear_2", f"{act}, {weight} -> {embedded}"),
            ]
        if before.axes:
            total = Maps(f"{name}.sum", before.axes)
            other = Maps(f"{name}.same", before.axes)
            pattern = f"{before}, {other} -> {total}"
            same = pointwise(other.tensor, f"{embedded} -> {other}", "copy", laid=embedded.axes[1])
            trail.ops += [same, pointwise(total.tensor, pattern, "add")]
            embedded = total
        before = embedded
    trail.aside["time"] = before


def _guided(trail: Trail, width: int, step: str) -> str:
    """Declare a time step with the strength of guidance, projected, and return their sum."""
    wide, axes = trail.new_axis("c", width), step[step.index("[") :]
    own = f"*w[{wide} {axes[1:-1].split()[1]}]"
    trail.ops += [
        einsum("guidance", f"!strength[b {wide}], {own} -> guidance{axes}"),
        pointwise("guide", f"{step}, guidance{axes} -> guided{axes}", "add"),
    ]
    return f"guided{axes}"


def read_prompt(trail: Trail, image: Sample, wide: int, width: int) -> None:
    """Declare the prompt aside, projected if it is as wide as something else."""
    axis = trail.new_axis("l", image.text)
    own = trail.new_axis("c", width)
    if wide < 0:
        trail.aside["prompt"] = Maps("prompt", ("b", own, axis), constant=True)
        return
    old, result = trail.new_axis("c", wide), Maps("prompt", ("b", own, axis))
    weight = f"*w[{old} {own}] + *bias[{own}]"
    trail.ops.append(einsum("text_proj", f"!states[b {old} {axis}], {weight} -> {result}"))
    trail.aside["prompt"] = result
