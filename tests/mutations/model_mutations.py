"""Faults in the model outside its attention: sections 3 and 5.4 of the paper."""

from mutation import Mutation

_DECODER = "models/sequence_decoder.py"
_DROPOUT = "modules/dropout.py"
_EMBEDDING = "modules/embedding.py"
_ENCODER = "models/sequence_encoder.py"
_FEED_FORWARD = "modules/feed_forward.py"
_INT8 = "modules/int8_linear.py"
_MODEL = "models/vaswani_transformer.py"
_POSITIONS = "modules/positional_encoding.py"
_PACKING = "modules/packing.py"
_SUBLAYER = "modules/sublayer.py"

_TEST_DROPOUT = "unit/test_dropout.py"
_TEST_EMBEDDING = "unit/test_embedding_and_positions.py"
_TEST_INT8 = "unit/test_int8_linear.py"
_TEST_MODEL = "unit/test_model.py"
_TEST_PLACES = "unit/test_dropout_places.py"
_TEST_STACKS = "unit/test_stacks.py"

MODEL = [
    # 3.1 stacks
    Mutation(
        "LayerNorm before the sub-layer",
        "modules/encoder.py",
        """        attended_BSD, _ = self.self_attention(x_BSD, mask, packing=packing)
        x_BSD = self.after_self_attention(x_BSD, attended_BSD)
""",
        """        attended_BSD, _ = self.self_attention(self.after_self_attention.norm(x_BSD), mask, packing=packing)
        x_BSD = x_BSD + attended_BSD
""",
        _TEST_STACKS,
    ),
    Mutation(
        "LayerNorm after the stack",
        "modules/encoder.py",
        "return x if packing is None else packing.unpack(x)",
        "return nn.functional.layer_norm(x if packing is None else packing.unpack(x), x.shape[-1:])",
        _TEST_STACKS,
    ),
    # padding left out
    Mutation(
        "padding stands for a token of another sentence",
        _PACKING,
        "firsts_B1 + (is_token_BT.cumsum(dim=1) - 1).clamp_(min=0)",
        "(firsts_B1 + is_token_BT.cumsum(dim=1) - 1).clamp_(min=0)",
        "unit/test_packing.py",
    ),
    Mutation(
        "gradients go to the tokens' numbers instead of their places",
        _PACKING,
        "flat.index_copy_(0, ctx.packing.rows_N, gradients[0].squeeze(0))",
        "flat.index_copy_(0, torch.arange(gradients[0].size(1)), gradients[0].squeeze(0))",
        "unit/test_packing.py",
    ),
    Mutation("epsilon of LayerNorm 1e-5", _SUBLAYER, "EPSILON = 1e-6", "EPSILON = 1e-5", _TEST_STACKS),
    Mutation("no residual", _SUBLAYER, ", residual=x_BTD", "", _TEST_STACKS),
    # 3.3 feed-forward
    Mutation(
        "no ReLU", _FEED_FORWARD, "functional.relu(self.inner(x_BTD), inplace=True)", "self.inner(x_BTD)", _TEST_STACKS
    ),
    Mutation(
        "GELU",
        _FEED_FORWARD,
        "functional.relu(self.inner(x_BTD), inplace=True)",
        "functional.gelu(self.inner(x_BTD))",
        _TEST_STACKS,
    ),
    Mutation(
        "no b_1",
        _FEED_FORWARD,
        "self.inner(x_BTD)",
        "functional.linear(x_BTD, self.inner.weight)",
        _TEST_STACKS,
    ),
    Mutation(
        "gradient of a bias averaged",
        "modules/linear.py",
        "rows.sum(dim=0) if wants_bias",
        "rows.mean(dim=0) if wants_bias",
        "unit/test_linear.py",
    ),
    Mutation(
        "bfloat16 by float32: the matrix is not rounded",
        "modules/rounded_linear.py",
        "_rounded(weight), None",
        "weight.float(), None",
        "unit/test_linear.py",
    ),
    Mutation(
        "a packed matrix is used after its weight has changed",
        "modules/linear.py",
        "if same and",
        "if",
        "unit/test_linear.py",
    ),
    # 8-bit integers in translation
    Mutation("int8: numbers are cut", _INT8, "add_(self.range + 1.5)", "add_(self.range + 1.0)", _TEST_INT8),
    Mutation("int8: inputs not moved back", _INT8, "-move * integers_OI", "0 * integers_OI", _TEST_INT8),
    Mutation(
        "int8: one scale for all inputs",
        _INT8,
        "x.abs().amax(dim=-1, keepdim=True)",
        "x.abs().amax().expand(*x.shape[:-1], 1).clone()",
        _TEST_INT8,
    ),
    Mutation("int8: sums are clipped", _INT8, "90 if clipped.any() else 127", "127", _TEST_INT8),
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
        "linear(x_BTD, self.weight)",
        "linear(x_BTD, self.weight) * math.sqrt(self.embedding_dim)",
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
        "angles in float32",
        _POSITIONS,
        "angle = position / 10000.0**exponent",
        "angle = (position / 10000.0**exponent).float()",
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
    Mutation(
        "padding before the target seen",
        _DECODER,
        " & between_padding(tokens_BT, padding_idx)[:, None, None, :]",
        "",
        _TEST_MODEL,
    ),
    Mutation(
        "a padding symbol inside of the target left out",
        _DECODER,
        "return is_token.cumsum(dim=1).gt(0) & is_token.flip(1).cumsum(dim=1).flip(1).gt(0)",
        "return is_token.gt(0)",
        "unit/test_fast_paths.py",
    ),
    Mutation(
        "mask of the source not reordered",
        _ENCODER,
        '"mask": None if mask is None else mask.index_select(0, new_order)',
        '"mask": mask',
        _TEST_MODEL,
    ),
    # 5.4 dropout
    Mutation(
        "dropout after the residual sum",
        _SUBLAYER,
        "self.dropout(sublayer_output_BTD, residual=x_BTD)",
        "self.dropout(x_BTD + sublayer_output_BTD)",
        _TEST_STACKS,
    ),
    Mutation("no dropout on the source's embeddings", _ENCODER, "self.dropout(x_BSD)", "x_BSD", _TEST_PLACES),
    Mutation(
        "no dropout on the target's embeddings",
        _DECODER,
        "self.dropout(self.embedding(prev_output_tokens) + table)",
        "self.embedding(prev_output_tokens) + table",
        _TEST_PLACES,
    ),
    Mutation(
        "dropout on embeddings but not on positions",
        _DECODER,
        "self.dropout(self.embedding(prev_output_tokens) + table)",
        "self.dropout(self.embedding(prev_output_tokens)) + table",
        _TEST_PLACES,
    ),
    Mutation("kept values not scaled", _DROPOUT, "(x * keep).mul_(ctx.scale)", "x * keep", _TEST_DROPOUT),
    Mutation(
        "gradient passes where the value was dropped",
        _DROPOUT,
        "(gradients[0] * keep).mul_(ctx.scale)",
        "(gradients[0] * ctx.scale)",
        _TEST_DROPOUT,
    ),
    Mutation("one of four numbers half as large", _DROPOUT, "random_(-(2**63), None)", "random_()", _TEST_DROPOUT),
    Mutation(
        "scaled by the rate before rounding",
        _DROPOUT,
        "= 1.0 / probability, x.dtype",
        "= 1.0 / (1.0 - dropout), x.dtype",
        _TEST_DROPOUT,
    ),
    Mutation("dropout in evaluation", _DROPOUT, "if self.training and self", "if self", _TEST_DROPOUT),
    Mutation(
        "residual scaled with what is dropped",
        _DROPOUT,
        "torch.add(residual, x.mul_(keep), alpha=ctx.scale, out=x)",
        "x.mul_(keep).add_(residual).mul_(ctx.scale)",
        _TEST_DROPOUT,
    ),
    # initialisation, as in the code released with the paper
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
