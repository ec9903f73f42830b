"""Models of several parts, as values: what stands between an image and a language model."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from symbolic_cost.layers.connector import Connector, Join, Trait, Wide
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.nested.joints import Adapter, Halved, Merger, Middle, Resampler
from symbolic_cost.records import dataclass, field, replace


class Ties(StrEnum):
    """Who says that the output head is the token table."""

    WHOLE = "whole"
    ALIKE = "alike"
    GIVEN = "given"
    EITHER = "either"
    OWN = "own"
    NEVER = "never"


@dataclass(frozen=True)
class Nested:
    """A language model that sees images.

    Args:
        vision: model_type of the tower unless the section names it.
        text: model_type of the language model unless the section names it.
        connector: between them.
        sections: keys of both.
        merge: field of the patches along a side that a token joins: of the tower's section, of the
            whole, or empty.
        tokens: field of the tokens of an image, where they are given.
        stages: field that lists further connectors of the tower.
        function: field of the activation function of the connector.
        biased: field that says whether its products have biases.
        ties: who says that the output head is the token table: the whole; it and its language
            model alike; the language model where the whole does not; either; the language model
            alone; or nobody.
        tied: whether it is unless the whole says.
        middle: what tells the widths of the connector.
        beside: keys of the whole that are none of the language model's, as a regular expression,
            where those of both stand side by side.
        layer: of the tower, which is read unless the whole says, counted from the last.
        unused: weights beside the connector, by name and axes; images of it come in tiles, whose
            number of tokens only their sides tell.
    """

    vision: str
    text: str
    connector: Connector
    sections: tuple[str, str] = ("vision_config", "text_config")
    merge: str = ""
    tokens: str = ""
    stages: str = ""
    function: str = ""
    biased: str = ""
    ties: Ties = Ties.WHOLE
    tied: bool = False
    middle: Middle = Middle()
    beside: str = ""
    layer: int = -1
    unused: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


class Meeting(StrEnum):
    """How texts and images come to one width."""

    PROJECTED = "both are projected to a common width"
    HEADED = "the text has a biased product of its own, to the width of images"
    WIDENED = "both are projected, every token of a text to `project_dim` before"


@dataclass(frozen=True)
class Contrastive:
    """Two towers whose embeddings of texts and images are compared.

    Args:
        vision: model_type of the tower of images.
        text: that of the tower of texts.
        meeting: how both come to one width.
        scalars: learned factors and offsets of the logits.
    """

    vision: str
    text: str
    meeting: Meeting = Meeting.PROJECTED
    scalars: int = 1


CONTRASTIVE: Mapping[str, Contrastive] = {
    "clip": Contrastive("clip_vision_model", "clip_text_model"),
    "metaclip_2": Contrastive("metaclip_2_vision_model", "metaclip_2_text_model"),
    "siglip": Contrastive("siglip_vision_model", "siglip_text_model", Meeting.HEADED, scalars=2),
    "siglip2": Contrastive("siglip2_vision_model", "siglip2_text_model", Meeting.HEADED, scalars=2),
    "chinese_clip": Contrastive("chinese_clip_vision_model", "chinese_clip_text_model"),
    "aimv2": Contrastive("aimv2_vision_model", "aimv2_text_model"),
    "altclip": Contrastive("altclip_vision_model", "altclip_text_model", Meeting.WIDENED),
}
"""Families by model_type."""

TEXTS: Mapping[str, str] = {
    "qwen2_vl_text": "qwen2",
    "qwen2_5_omni_text": "qwen2",
    "qwen3_omni_moe_text": "qwen3_moe",
    "qwen2_5_vl_text": "qwen2",
    "exaone4_5_text": "exaone4",
    "florence2_language": "bart",
    "glm4v_moe_text": "glm4_moe",
    "kimi_k2": "deepseek_v3",
    "paddleocr_vl_text": "ernie4_5",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
}
"""Families of language models by the name of a section that is one of them."""

_JOINED = Connector(Join.SIDE_BY_SIDE, Norm.LAYER, hidden=Wide.JOINED)
_SHUFFLED = Connector(Join.SIDE_BY_SIDE, hidden=Wide.NONE, traits=Trait.NONE)

_LLAVA = Nested(
    "clip_vision_model",
    "llama",
    Connector(),
    function="projector_hidden_act",
    biased="multimodal_projector_bias",
    layer=-2,
    ties=Ties.EITHER,
)
_NEWLINE = {"newline": "e"}
_INTERN = Nested(
    "internvl_vision",
    "qwen2",
    Connector(Join.SIDE_BY_SIDE, Norm.LAYER, traits=Trait.BIAS | Trait.LATE),
    merge="downsample_ratio",
    function="projector_hidden_act",
    tied=True,
)
_GEMMA = Nested(
    "siglip_vision_model",
    "gemma3_text",
    Connector(Join.MEAN, Norm.RMS_SHIFTED, hidden=Wide.NONE, traits=Trait.NONE),
    tokens="mm_tokens_per_image",
    tied=True,
)
_MISTRAL = Nested(
    "pixtral",
    "mistral",
    Connector(Join.SIDE_BY_SIDE, Norm.RMS, traits=Trait.MERGE),
    merge="spatial_merge_size",
    function="projector_hidden_act",
    biased="multimodal_projector_bias",
    tied=True,
)
_GLM = Nested(
    "glm4v_vision",
    "glm4v_text",
    Connector(Join.SIDE_BY_SIDE, function="silu", traits=Trait.DEEP),
    merge="spatial_merge_size",
    middle=Merger(),
)
_COHERE = Nested(
    "siglip_vision_model",
    "cohere2",
    Connector(
        Join.SIDE_BY_SIDE, Norm.LAYER, function="silu", traits=Trait.BIAS | Trait.LATE | Trait.GATED
    ),
    merge="downsample_factor",
    middle=Halved("alignment_intermediate_size"),
    tied=True,
)
_QWEN = Nested(
    "qwen3_vl_vision",
    "qwen3",
    _JOINED,
    merge="spatial_merge_size",
    stages="deepstack_visual_indexes",
)

NESTED: Mapping[str, Nested] = {
    "llava": _LLAVA,
    "llava_next": replace(_LLAVA, unused=_NEWLINE, ties=Ties.WHOLE),
    "llava_next_video": replace(_LLAVA, unused=_NEWLINE),
    "deepseek_vl": Nested("siglip_vision_model", "llama", Connector(), tied=True),
    "aya_vision": _COHERE,
    "cohere2_vision": replace(_COHERE, connector=replace(_COHERE.connector, norm=None)),
    "llava_onevision": replace(
        _LLAVA, vision="siglip_vision_model", text="qwen2", layer=-1, unused=_NEWLINE
    ),
    "llama4": Nested(
        "llama4_vision_model",
        "llama4_text",
        Connector(Join.SIDE_BY_SIDE, hidden=Wide.NONE, traits=Trait.ADAPT),
        merge="pixel_shuffle_ratio",
        middle=Adapter(("projector_input_dim", "projector_output_dim", "vision_output_dim")),
        ties=Ties.OWN,
    ),
    "paligemma": Nested("siglip_vision_model", "gemma", Connector(hidden=Wide.NONE), tied=True),
    "gemma3": _GEMMA,
    "shieldgemma2": _GEMMA,
    "glm4v": replace(_GLM, ties=Ties.EITHER),
    "glm46v": _GLM,
    "glmga": _GLM,
    "glm4v_moe": replace(_GLM, vision="glm4v_moe_vision", text="glm4v_moe_text", ties=Ties.EITHER),
    "idefics2": Nested(
        "idefics2_vision",
        "mistral",
        Connector(function="silu", traits=Trait.GATED),
        middle=Resampler("perceiver_config"),
    ),
    "idefics3": Nested("idefics3_vision", "llama", _SHUFFLED, merge="scale_factor"),
    "smolvlm": Nested("smolvlm_vision", "llama", _SHUFFLED, merge="scale_factor"),
    "internvl": _INTERN,
    "internvl_chat": replace(
        _INTERN,
        vision="intern_vit_6b",
        sections=("vision_config", "llm_config"),
        function="",
        tied=False,
    ),
    "qianfan_ocr": replace(_INTERN, vision="qianfan_ocr_vision", text="qwen3", tied=False),
    "mistral3": _MISTRAL,
    "mistral_large4": replace(_MISTRAL, text="mistral_large4_text", tied=False),
    "lighton_ocr": Nested(
        "pixtral",
        "qwen3",
        Connector(Join.SIDE_BY_SIDE, Norm.RMS, traits=Trait.MERGE),
        merge="spatial_merge_size",
        tied=True,
    ),
    "phi3_v": Nested(
        "clip_vision_model",
        "phi3",
        Connector(Join.SIDE_BY_SIDE),
        ("img_processor", "text_config"),
        merge="patches_of_a_side",
        unused={"between_rows": "m_i e_v", "between_images": "m_i e_v"},
    ),
    "qwen2_vl": Nested(
        "qwen2_vl_vision",
        "qwen2_vl_text",
        _JOINED,
        merge="spatial_merge_size",
        ties=Ties.EITHER,
    ),
    "qwen2_5_vl": Nested(
        "qwen2_5_vl_vision",
        "qwen2_5_vl_text",
        replace(_JOINED, norm=Norm.RMS),
        merge="spatial_merge_size",
        ties=Ties.EITHER,
    ),
    "qwen3_vl": _QWEN,
    "qwen3_vl_moe": replace(_QWEN, vision="qwen3_vl_moe_vision", text="qwen3_vl_moe_text"),
    "cohere_compass": replace(_QWEN, vision="cohere_compass_vision", text="cohere_compass_text"),
    "qwen3_5": replace(_QWEN, vision="qwen3_5_vision", text="qwen3_5_text", stages=""),
    "qwen3_5_moe": replace(_QWEN, vision="qwen3_5_moe_vision", text="qwen3_5_moe_text", stages=""),
    "qwen4_exp": replace(_QWEN, vision="qwen4_exp_vision", text="qwen4_exp_text", stages=""),
}
"""Families by model_type."""
