"""Faults in attention: section 3.2 of the paper."""

from mutation import Mutation

_ATTENTION = "modules/attention.py"
_CONFIG = "models/config.py"

_TEST_ATTENTION = "unit/test_attention.py"
_TEST_MODEL = "unit/test_model.py"
_TEST_STACKS = "unit/test_stacks.py"

ATTENTION = [
    Mutation("no 1/sqrt(d_k)", _ATTENTION, " / math.sqrt(q_BHTK.size(-1))", "", _TEST_ATTENTION),
    Mutation(
        "scaled by d_k instead of its root",
        _ATTENTION,
        " / math.sqrt(q_BHTK.size(-1))",
        " / q_BHTK.size(-1)",
        _TEST_ATTENTION,
    ),
    Mutation(
        "no 1/sqrt(d_k) in the fused kernel",
        _ATTENTION,
        "return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)\n\n\nclass",
        "return functional.scaled_dot_product_attention(\n"
        "        q, k, v, attn_mask=mask, is_causal=causal, scale=1.0\n    )\n\n\nclass",
        _TEST_ATTENTION,
    ),
    Mutation(
        "masked scores 0 instead of -inf",
        _ATTENTION,
        "masked_fill(~mask, -math.inf)",
        "masked_fill(~mask, 0.0)",
        _TEST_ATTENTION,
    ),
    Mutation("upper triangle", _ATTENTION, ".tril()", ".triu()", _TEST_ATTENTION),
    Mutation("causal mask hides the position itself", _ATTENTION, ".tril()", ".tril(-1)", _TEST_ATTENTION),
    Mutation(
        "fused kernel not causal",
        _ATTENTION,
        "_scaled_dot_product(q_BHTK, k_BHSK, v_BHSV, None, causal)",
        "_scaled_dot_product(q_BHTK, k_BHSK, v_BHSV, None, False)",
        _TEST_STACKS,
    ),
    Mutation(
        "query without a legal key sees all in the fused kernel",
        _ATTENTION,
        "mask | ~has_key, causal).masked_fill(~has_key, 0.0)",
        "mask | ~has_key, causal)",
        _TEST_ATTENTION,
    ),
    Mutation(
        "query without a legal key sees all in the formula",
        _ATTENTION,
        "weights_BHTS = weights_BHTS * has_key",
        "pass",
        _TEST_ATTENTION,
    ),
    Mutation(
        "padding seen in the fused kernel",
        _ATTENTION,
        "mask | ~has_key, causal)",
        "None, causal)",
        _TEST_ATTENTION,
    ),
    Mutation(
        "heads interleaved",
        _ATTENTION,
        "x_BT.view(batch, length, self.num_heads, width // self.num_heads).transpose(1, 2)",
        "x_BT.view(batch, length, width // self.num_heads, self.num_heads).permute(0, 3, 1, 2)",
        _TEST_ATTENTION,
    ),
    Mutation(
        "heads concatenated in another order",
        _ATTENTION,
        "heads_BHTV.transpose(1, 2).flatten(2)",
        "heads_BHTV.permute(0, 2, 3, 1).flatten(2)",
        _TEST_ATTENTION,
    ),
    Mutation(
        "cross attention reads the target",
        _ATTENTION,
        "self.key_value(memory_BSD)",
        "self.key_value(x_BTD)",
        f"{_TEST_ATTENTION}::test_multi_head_attention_with_free_widths",
    ),
    Mutation(
        "attention bias by default",
        _CONFIG,
        "attention_bias: bool = field(\n        default=False",
        "attention_bias: bool = field(\n        default=True",
        _TEST_MODEL,
    ),
    Mutation(
        "dropout on attention weights by default",
        _CONFIG,
        "attention_dropout: float = field(default=0.0",
        "attention_dropout: float = field(default=0.1",
        _TEST_MODEL,
    ),
    Mutation(
        "dropout on attention weights outside training",
        _ATTENTION,
        "dropout = self.dropout if self.training else 0.0",
        "dropout = self.dropout",
        _TEST_ATTENTION,
    ),
    Mutation(
        "Glorot on each of the fused matrices",
        _ATTENTION,
        "nn.init.xavier_uniform_(projection.weight)",
        "[nn.init.xavier_uniform_(part) for part in projection.weight.split(512)]",
        _TEST_ATTENTION,
    ),
    Mutation(
        "attention of one head instead of the mean",
        "models/sequence_decoder.py",
        "weights_BHTS.mean(dim=1)",
        "weights_BHTS[:, 0]",
        "unit/test_alignments.py",
    ),
]
