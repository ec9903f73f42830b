"""Lengths of attention in sparse blocks, and up to which length it sees all positions."""

from sympy import Expr, ceiling

from symbolic_cost.layers.attention import Attention
from symbolic_cost.layers.block_sparse import SparseBlocks
from symbolic_cost.models.encoders.changes import Tables
from symbolic_cost.models.fields import Fields

KINDS = ("block_sparse", "original_full")


def sparse_blocks(
    fields: Fields, attention: Attention, tokens: Expr
) -> tuple[Attention, Expr, Tables]:
    """Return the attention of a BigBird, the positions that it runs on, and sizes of blocks.

    Up to 11 blocks, where 3 are at random, it is full; beyond, positions are padded to whole ones:
    800 tokens in blocks of 64 run as 832, 2 blocks at the ends, 2 beside them and 9 between.
    """
    kind = fields.text("attention_type", KINDS[0], KINDS)
    block, few = fields.size("block_size", 64), fields.size("num_random_blocks", 3)
    most = (5 + 2 * few) * block
    if kind == KINDS[1] or (tokens.is_Integer and tokens <= most):
        return attention, tokens, {}
    problem = (
        f"a length is needed: beyond {most} tokens, blocks are sparse; l=4096 says one, and is no "
        "symbol to ask for"
    )
    fields.require(holds=bool(tokens.is_Integer), problem=problem, name="attention_type")
    fields.require(holds=block > 1, problem="1 is no block", name="block_size")
    own: Tables = {"u_n": 2 * block, "n_w": 2, "s_n": ceiling(tokens / block) - 4}
    own |= {"x_n": block, "y_n": 3 * block, "z_n": (4 + few) * block, "w_n": few * block}
    own |= {"o_n": block, "g_n": (5 + few) * block}
    padded = ceiling(tokens / block) * block
    sparse = SparseBlocks(**vars(attention))
    return sparse, padded, own | dict.fromkeys(("r_u", "l_u", "t_u"), tokens)
