# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of the stock transformer encoder: the fused inference path and its copies of the weights are taken out."""

from fairseq_edits.edit import Cut, Edit, Replace

_LAYER = "fairseq/modules/transformer_layer.py"
_ENCODER = "fairseq/models/transformer/transformer_encoder.py"

EDITS = [
    Edit(
        "fused-encoder-layer",
        "the layer calls a private torch function with an old signature (generation ends in 'Mask Type should be "
        "defined'), parses torch's version with int(), and registers copies of its weights as parameters that are "
        "never trained; such copies in an older checkpoint are dropped on loading",
        Cut(
            _LAYER,
            "        self.load_to_BT = False\n",
            "    def build_fc1(self, input_dim, output_dim, q_noise, qn_block_size):\n        return quant_noise(\n",
            "\n",
        ),
        Replace(
            _LAYER,
            """\
        layer_norm_map = {"0": "self_attn_layer_norm", "1": "final_layer_norm"}
        for old, new in layer_norm_map.items():
            for m in ("weight", "bias"):
                k = "{}.layer_norms.{}.{}".format(name, old, m)
                if k in state_dict:
                    state_dict["{}.{}.{}".format(name, new, m)] = state_dict[k]
                    del state_dict[k]
""",
            """\
        layer_norm_map = {"0": "self_attn_layer_norm", "1": "final_layer_norm"}
        for old, new in layer_norm_map.items():
            for m in ("weight", "bias"):
                k = "{}.layer_norms.{}.{}".format(name, old, m)
                if k in state_dict:
                    state_dict["{}.{}.{}".format(name, new, m)] = state_dict[k]
                    del state_dict[k]
        # copies of the weights that fairseq 0.12.0 to 0.12.2 kept for a fused inference path
        for part in ("in_proj", "out_proj", "fc1", "fc2"):
            for m in ("weight", "bias"):
                state_dict.pop("{}.{}_{}".format(name, part, m), None)
""",
        ),
        Cut(
            _LAYER,
            "        if self.training:\n            self.ever_training = True\n",
            "# backward compatible with the legacy argparse format\nclass TransformerEncoderLayer(",
            """\
        if attn_mask is not None:
            attn_mask = attn_mask.masked_fill(
                attn_mask.to(torch.bool), -1e8 if x.dtype == torch.float32 else -1e4
            )

        residual = x
        if self.normalize_before:
            x = self.self_attn_layer_norm(x)
        x, _ = self.self_attn(
            query=x,
            key=x,
            value=x,
            key_padding_mask=encoder_padding_mask,
            need_weights=False,
            attn_mask=attn_mask,
        )
        x = self.dropout_module(x)
        x = self.residual_connection(x, residual)
        if not self.normalize_before:
            x = self.self_attn_layer_norm(x)

        residual = x
        if self.normalize_before:
            x = self.final_layer_norm(x)
        x = self.activation_fn(self.fc1(x))
        x = self.activation_dropout_module(x)
        x = self.fc2(x)

        fc_result = x

        x = self.dropout_module(x)
        x = self.residual_connection(x, residual)
        if not self.normalize_before:
            x = self.final_layer_norm(x)

        if self.return_fc and not torch.jit.is_scripting():
            return x, fc_result
        return x


""",
        ),
    ),
    Edit(
        "fused-encoder",
        "the encoder switches the fused path on and feeds it nested tensors",
        Cut(
            _ENCODER,
            "        # nested tensor and BT enable\n",
            "        for layer in self.layers:\n            lr = layer(x, encoder_padding_mask",
            """\
        # encoder layers
        encoder_padding_mask_out = encoder_padding_mask if has_pads else None
""",
        ),
        Cut(
            _ENCODER,
            "        # change back to non-nested and Batch second\n",
            "        if self.layer_norm is not None:\n            x = self.layer_norm(x)\n",
        ),
    ),
]
