"""What a classifier tells apart: the labels of a configuration."""

from collections.abc import Mapping

from symbolic_cost.models.fields import Fields

_OF_IMAGES = "ForImageClassification"
_NAMED = frozenset({"openai_privacy_filter"})
"""Families that take all labels that are named, whatever their number is said to be."""


def span_of(fields: Fields) -> int:
    """Return 2, the beginning and the end of a span, whatever is said to be labelled."""
    ends = ("begin", "end")
    fine = classes_of(fields) == len(ends)
    fields.require(holds=fine, problem="2, begin and end, are accepted", name="num_labels")
    return len(ends)


def classes_of(fields: Fields) -> int:
    """Return how many classes the configuration labels.

    Two unless it says, as the heads of Hugging Face; none where there is no classifier. Files that
    write out every attribute hold labels too: where these were cut from one of images, those of
    ImageNet are assumed, which the answer says.
    """
    labels = fields.source.values.get("id2label")
    named = fields.family in _NAMED or not fields.has("num_labels")
    if isinstance(labels, Mapping) and labels and named:
        fields.ignore("num_labels")
        return len(labels)
    cut = "is_encoder_decoder" in fields.source.values and fields.head.endswith(_OF_IMAGES)
    number = fields.optional_size("num_labels", 1000 if cut else 2) or 0
    origin = fields.origins.get("num_labels")
    if cut and origin is not None and origin.how == "family default":
        fields.assume("num_labels", "1000 classes, as the labels were cut from the file")
    return number
