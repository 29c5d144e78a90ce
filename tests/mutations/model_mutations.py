"""Faults in the model: sections 3 and 5.4 of the paper."""

from mutation import Mutation

_ATTENTION = "modules/attention.py"
_CONFIG = "models/config.py"
_DECODER = "models/sequence_decoder.py"
_DROPOUT = "modules/dropout.py"
_EMBEDDING = "modules/embedding.py"
_ENCODER = "models/sequence_encoder.py"
_FEED_FORWARD = "modules/feed_forward.py"
_MODEL = "models/vaswani_transformer.py"
_POSITIONS = "modules/positional_encoding.py"
_SUBLAYER = "modules/sublayer.py"

_TEST_ATTENTION = "unit/test_attention.py"
_TEST_DROPOUT = "unit/test_dropout.py"
_TEST_EMBEDDING = "unit/test_embedding_and_positions.py"
_TEST_MODEL = "unit/test_model.py"
_TEST_STACKS = "unit/test_stacks.py"

MODEL = [
    # 3.1 stacks
    Mutation(
        "LayerNorm before the sub-layer",
        "modules/encoder.py",
        """        attended_BSD, _ = self.self_attention(x_BSD, mask)
        x_BSD = self.after_self_attention(x_BSD, attended_BSD)
""",
        """        attended_BSD, _ = self.self_attention(self.after_self_attention.norm(x_BSD), mask)
        x_BSD = x_BSD + attended_BSD
""",
        _TEST_STACKS,
    ),
    Mutation(
        "LayerNorm after the stack",
        "modules/encoder.py",
        "        return x_BSD\n",
        "        return nn.functional.layer_norm(x_BSD, x_BSD.shape[-1:])\n",
        _TEST_STACKS,
    ),
    Mutation("epsilon of LayerNorm 1e-5", _SUBLAYER, "EPSILON = 1e-6", "EPSILON = 1e-5", _TEST_STACKS),
    Mutation("no residual", _SUBLAYER, "self.norm(x_BTD + self", "self.norm(self", _TEST_STACKS),
    # 3.2 attention
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
        "attn_mask=mask | ~has_key)",
        "attn_mask=mask | ~has_key, scale=1.0)",
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
    Mutation("fused kernel not causal", _ATTENTION, "is_causal=causal", "is_causal=False", _TEST_STACKS),
    Mutation(
        "query without a legal key sees all in the fused kernel",
        _ATTENTION,
        "attn_mask=mask | ~has_key) * has_key",
        "attn_mask=mask | ~has_key)",
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
        "attn_mask=mask | ~has_key)",
        "attn_mask=None)",
        _TEST_ATTENTION,
    ),
    Mutation(
        "softmax in half precision",
        _ATTENTION,
        "softmax(-1, dtype=_softmax_dtype(scores_BHTS))",
        "softmax(-1)",
        _TEST_ATTENTION,
    ),
    Mutation(
        "heads interleaved",
        _ATTENTION,
        "x_BT.view(batch, length, self.num_heads, -1).transpose(1, 2)",
        "x_BT.view(batch, length, -1, self.num_heads).permute(0, 3, 1, 2)",
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
    # 3.3 feed-forward
    Mutation("no ReLU", _FEED_FORWARD, "functional.relu(self.inner(x_BTD))", "self.inner(x_BTD)", _TEST_STACKS),
    Mutation("GELU", _FEED_FORWARD, "functional.relu(", "functional.gelu(", _TEST_STACKS),
    Mutation(
        "no b_1",
        _FEED_FORWARD,
        "self.inner(x_BTD)",
        "functional.linear(x_BTD, self.inner.weight)",
        _TEST_STACKS,
    ),
    # 3.4 embeddings
    Mutation(
        "embedding not scaled",
        _EMBEDDING,
        "super().forward(tokens_BT) * math.sqrt(self.embedding_dim)",
        "super().forward(tokens_BT)",
        _TEST_EMBEDDING,
    ),
    Mutation(
        "pre-softmax projection scaled too",
        _EMBEDDING,
        "functional.linear(x_BTD, self.weight)",
        "functional.linear(x_BTD, self.weight) * math.sqrt(self.embedding_dim)",
        _TEST_EMBEDDING,
    ),
    Mutation(
        "source embedding untied",
        _MODEL,
        'source_embedding if sharing == "all" else embedding(target)',
        "embedding(target)",
        _TEST_MODEL,
    ),
    Mutation(
        "pre-softmax projection untied",
        _MODEL,
        'embedding(target) if sharing == "none" else target_embedding',
        "embedding(target)",
        _TEST_MODEL,
    ),
    # 3.5 positions
    Mutation(
        "no positions",
        _ENCODER,
        "x_BSD = x_BSD + self.positions(token_positions(src_tokens, self.padding_idx), like=x_BSD)",
        "pass",
        _TEST_MODEL,
    ),
    Mutation("first position 1", _POSITIONS, ".cumsum(dim=1) - 1)", ".cumsum(dim=1))", _TEST_EMBEDDING),
    Mutation(
        "positions count padding",
        _POSITIONS,
        "tokens_BT.ne(padding_idx).cumsum",
        "tokens_BT.ge(0).cumsum",
        _TEST_EMBEDDING,
    ),
    Mutation(
        "a half of sines and a half of cosines",
        _POSITIONS,
        "torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)",
        "torch.cat([angle.sin(), angle.cos()], dim=-1)",
        _TEST_EMBEDDING,
    ),
    Mutation(
        "wavelengths up to 10000 exactly",
        _POSITIONS,
        "dtype=torch.float64) / d_model",
        "dtype=torch.float64) / (d_model - 2)",
        _TEST_EMBEDDING,
    ),
    Mutation(
        "positions in float32",
        _POSITIONS,
        "torch.arange(length, dtype=torch.float64)",
        "torch.arange(length, dtype=torch.float32)",
        _TEST_EMBEDDING,
    ),
    Mutation(
        "every decoding step at position 0",
        _DECODER,
        "prev_output_tokens[:, -1:], table[:, -1:]",
        "prev_output_tokens[:, -1:], table[:, :1]",
        _TEST_MODEL,
    ),
    # masks and caches of the whole model
    Mutation(
        "padding of the source seen",
        _ENCODER,
        "return None if is_token.all() else is_token[:, None, None, :]",
        "return None",
        _TEST_MODEL,
    ),
    Mutation("padding before the target seen", _DECODER, " & is_token[:, None, None, :]", "", _TEST_MODEL),
    Mutation(
        "mask of the source not reordered",
        _ENCODER,
        '"mask": None if mask is None else mask.index_select(0, new_order)',
        '"mask": mask',
        _TEST_MODEL,
    ),
    Mutation(
        "attention of one head instead of the mean",
        _DECODER,
        "weights_BHTS.mean(dim=1)",
        "weights_BHTS[:, 0]",
        _TEST_MODEL,
    ),
    # 5.4 dropout
    Mutation(
        "dropout after the residual sum",
        _SUBLAYER,
        "x_BTD + self.dropout(sublayer_output_BTD)",
        "self.dropout(x_BTD + sublayer_output_BTD)",
        _TEST_STACKS,
    ),
    Mutation("no dropout on the source's embeddings", _ENCODER, "self.dropout(x_BSD)", "x_BSD", _TEST_MODEL),
    Mutation(
        "no dropout on the target's embeddings",
        _DECODER,
        "self.dropout(self.embedding(prev_output_tokens) + table)",
        "self.embedding(prev_output_tokens) + table",
        _TEST_MODEL,
    ),
    Mutation(
        "dropout on embeddings but not on positions",
        _DECODER,
        "self.dropout(self.embedding(prev_output_tokens) + table)",
        "self.dropout(self.embedding(prev_output_tokens)) + table",
        _TEST_MODEL,
    ),
    Mutation("kept values not scaled", _DROPOUT, "(x * keep).mul_(ctx.scale)", "x * keep", _TEST_DROPOUT),
    Mutation(
        "gradient passes where the value was dropped",
        _DROPOUT,
        "(gradients[0] * keep).mul_(ctx.scale)",
        "gradients[0] * ctx.scale",
        _TEST_DROPOUT,
    ),
    Mutation("one of four numbers half as large", _DROPOUT, "random_(-(2**63), None)", "random_()", _TEST_DROPOUT),
    Mutation(
        "scaled by the rate before rounding",
        _DROPOUT,
        "ctx.scale = 1.0 / probability",
        "ctx.scale = 1.0 / (1.0 - dropout)",
        _TEST_DROPOUT,
    ),
    Mutation("dropout in evaluation", _DROPOUT, "not self.training or ", "", _TEST_DROPOUT),
    # initialisation, as in the code released with the paper
    Mutation(
        "Glorot on each of the fused matrices",
        _ATTENTION,
        "nn.init.xavier_uniform_(projection.weight)",
        "[nn.init.xavier_uniform_(part) for part in projection.weight.split(512)]",
        _TEST_ATTENTION,
    ),
    Mutation("embedding std 1", _EMBEDDING, "std=self.embedding_dim**-0.5", "std=1.0", _TEST_EMBEDDING),
    # Table 3
    Mutation(
        "narrow keys make narrow values",
        "models/architectures.py",
        '"vaswani_base_dk16": {"d_k": 16}',
        '"vaswani_base_dk16": {"d_k": 16, "d_v": 16}',
        _TEST_MODEL,
    ),
    Mutation(
        "big model's dropout 0.1", "models/architectures.py", '"dropout": 0.3}', '"dropout": 0.1}', _TEST_MODEL, 2
    ),
]
