"""The attention that fairseq's alignments are made of: a mean over heads, and over the models of an ensemble."""

import numpy as np
import reference
import torch
from stock_weights import numpy_attention, randomize
from toy_task import build, dictionary

from vaswani_plugin.generation.beam_search import BeamSearch, SearchSettings
from vaswani_plugin.models.config import VaswaniTransformerConfig

EOS = 2
SOURCE, TARGET = torch.tensor([[5, 9, 4, 7, 6, 8, EOS]]), torch.tensor([[EOS, 6, 8, 5, 4]])


def test_the_mean_of_the_last_layers_heads() -> None:
    config = VaswaniTransformerConfig(d_model=12, num_heads=3).layer_config()
    model = build()
    cross = model.decoder.stack.layers[-1].cross_attention
    inputs: list[torch.Tensor] = []
    cross.register_forward_pre_hook(lambda _, args: inputs.append(args[0].detach()))
    (attention,) = model(SOURCE, None, TARGET)[1]["attn"]
    memory = model.encoder(SOURCE)["memory"][0].detach().numpy()
    weights = numpy_attention(cross, config)
    queries = inputs[0][0].numpy()
    heads = [
        reference.attention(queries @ w_q, memory @ w_k, memory @ w_v)[1]
        for w_q, w_k, w_v in zip(weights.w_q, weights.w_k, weights.w_v)
    ]
    np.testing.assert_allclose(attention[0].detach().numpy(), np.mean(heads, axis=0), atol=1e-12)
    assert np.abs(heads[0] - heads[1]).max() > 0.01


def test_the_mean_of_an_ensembles_models() -> None:
    ensemble = [build(), build()]
    randomize(ensemble[1], 1)
    search = BeamSearch(ensemble, dictionary(11), SearchSettings(min_len=3), alignment="soft")
    sample = {"net_input": {"src_tokens": SOURCE, "src_lengths": torch.tensor([7])}}
    ((hypothesis, *_),) = search.generate(ensemble, sample)
    tokens = hypothesis["tokens"].tolist()
    shifted = torch.tensor([[EOS, *tokens[:-1]]])
    first, second = (model(SOURCE, None, shifted)[1]["attn"][0][0].float() for model in ensemble)
    # A row of weights for each output token, which fairseq writes with six digits.
    written = torch.tensor([[float(weight) for weight in row] for row in hypothesis["alignment"]])
    torch.testing.assert_close(written, (first + second) / 2, atol=1e-5, rtol=0)
