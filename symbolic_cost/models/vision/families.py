"""The vision-transformer families, as values: a family that mixes known parts is one entry."""

from collections.abc import Mapping
from dataclasses import replace

from symbolic_cost.layers.attention import Bias, Rotated
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.heads import Boxes, Classes, Projected, Take, Taught
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.layers.pooling import AttentionPool, VectorQuery
from symbolic_cost.layers.residual import Branch, Outcome
from symbolic_cost.models.encoders.encoder import CLASSES, MATCHED, Encoder, Habit
from symbolic_cost.models.encoders.switches import QKV_BIASES
from symbolic_cost.models.vision.divided import Divided
from symbolic_cost.models.vision.transformer import VIT

_FURTHER = Piece.CLASS | Piece.BIAS | Piece.FURTHER
_KEYLESS = Bias.BOTH & ~Bias.KEY
_MEAN = Classes(Take.MEAN)
_BARE = replace(VIT, pooler=None)
_MASK = {"mask": "one e"}

_DINO = replace(
    _BARE, branch=Branch(outcome=Outcome.SCALE), heads={CLASSES: Classes(Take.BOTH)}, unused=_MASK
)
_BEIT = replace(
    _BARE,
    words=Patches(places=Places.NONE),
    last=None,
    heads={CLASSES: Classes(Take.MEAN, after=Norm.LAYER)},
).attended(bias=_KEYLESS)

_CLIP = replace(
    _BARE,
    words=Patches(Piece.CLASS, norm=Norm.LAYER),
    last=None,
    heads={CLASSES: _MEAN, MATCHED: Projected(norm=Norm.LAYER_BARE)},
    unused={"post_norm": "c_n e"},
)
_SIGLIP = replace(
    _BARE,
    words=Patches(Piece.BIAS),
    heads={CLASSES: _MEAN},
    pooler=AttentionPool(),
    habits=Habit.POOL,
)
_FREE = replace(_BARE, words=Patches(Piece.FRAMES, Places.NONE), last=None).attended(
    rotated=Rotated.WHOLE
)

VISION: Mapping[str, Encoder] = {
    **dict.fromkeys(("vit", "dpt"), VIT),
    "deit": replace(
        VIT, words=Patches(_FURTHER), heads={**VIT.heads, f"{CLASSES}WithTeacher": Taught()}
    ),
    "audio-spectrogram-transformer": replace(
        _BARE, words=Patches(_FURTHER), heads={"ForAudioClassification": Classes(after=Norm.LAYER)}
    ),
    "vit_msn": _BARE,
    "yolos": replace(VIT, words=Patches(_FURTHER), heads={"ForObjectDetection": Boxes()}),
    "vit_mae": replace(_BARE, words=Patches(places=Places.SOME)),
    "ijepa": replace(_BARE, words=Patches(Piece.BIAS), heads={CLASSES: _MEAN}),
    **dict.fromkeys(("beit", "data2vec-vision"), _BEIT),
    "dinov2": _DINO,
    "dinov2_with_registers": replace(_DINO, words=Patches(_FURTHER, Places.SOME)),
    "dinov3_vit": replace(_DINO, words=Patches(_FURTHER, Places.NONE)).attended(
        rotated=Rotated.WHOLE
    ),
    "vivit": replace(
        VIT,
        words=Patches(Piece.CLASS | Piece.BIAS | Piece.FRAMES),
        heads={"ForVideoClassification": Classes()},
    ),
    "timesformer": Divided(
        **vars(
            replace(
                _BARE,
                words=Patches(Piece.CLASS | Piece.BIAS | Piece.FRAMES, Places.SOME),
                heads={"ForVideoClassification": Classes()},
                unused={"times": "n_time e"},
                source="bertasius-2021",
            )
        )
    ),
    "videomae": replace(
        _BARE,
        words=Patches(Piece.BIAS | Piece.FRAMES, Places.COMPUTED),
        last=None,
        heads={"ForVideoClassification": Classes(Take.MEAN, after=Norm.LAYER)},
    ).attended(bias=_KEYLESS),
    **dict.fromkeys(
        (
            *("clip_vision_model", "chinese_clip_vision_model", "altclip_vision_model"),
            "metaclip_2_vision_model",
        ),
        _CLIP,
    ),
    # The position of its class token is learned, of half the width of a head.
    "mlcd_vision_model": replace(
        _CLIP,
        words=Patches(Piece.CLASS, Places.NONE, norm=Norm.LAYER),
        heads={},
        unused={**_CLIP.unused, "class_place": "d_half"},
    ).attended(rotated=Rotated.WHOLE),
    "blip_vision_model": _BARE,
    "aimv2_vision_model": replace(
        _BARE,
        words=Patches(Piece.BIAS, norm=Norm.RMS),
        perceptron=GatedMLP(),
        branch=Branch(Norm.RMS),
        last=Norm.RMS,
        pooler=VectorQuery(),
        heads={},
        traits=replace(VIT.traits, switches=QKV_BIASES, function="silu"),
    ).attended(bias=Bias.NONE),
    **dict.fromkeys(("siglip_vision_model", "siglip2_vision_model"), _SIGLIP),
    **dict.fromkeys(
        ("idefics2_vision", "idefics3_vision", "smolvlm_vision"), replace(_SIGLIP, pooler=None)
    ),
    **dict.fromkeys(
        ("internvl_vision", "intern_vit_6b", "qianfan_ocr_vision"),
        replace(_BARE, branch=Branch(outcome=Outcome.SCALE), last=None),
    ),
    "llama4_vision_model": replace(_CLIP, last=Norm.LAYER, heads={}, unused={}).attended(
        rotated=Rotated.WHOLE
    ),
    "pixtral": replace(
        _FREE,
        words=Patches(Piece.NONE, Places.NONE, Norm.RMS),
        perceptron=GatedMLP(),
        branch=Branch(Norm.RMS),
    ).attended(bias=Bias.NONE),
    "qwen2_vl_vision": _FREE,
    "qwen2_5_vl_vision": replace(
        _FREE, perceptron=GatedMLP(bias=Bias.BOTH), branch=Branch(Norm.RMS)
    ),
    **dict.fromkeys(
        ("glm4v_vision", "glm4v_moe_vision"),
        replace(
            _FREE,
            words=Patches(Piece.BIAS | Piece.FRAMES, Places.SOME, Norm.RMS),
            perceptron=GatedMLP(),
            branch=Branch(Norm.RMS),
            last=Norm.RMS,
        ).attended(bias=Bias.NONE),
    ),
    **dict.fromkeys(
        (
            *("qwen3_vl_vision", "qwen3_vl_moe_vision", "qwen3_5_vision"),
            *("qwen3_5_moe_vision", "qwen4_exp_vision", "cohere_compass_vision"),
        ),
        replace(_FREE, words=Patches(Piece.BIAS | Piece.FRAMES, Places.SOME)),
    ),
}
"""Families by model_type."""
