"""A model decoding one token at a time for R sentences with K hypotheses each."""

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer
from vaswani_plugin.modules.cache import LayerCache


class ModelSteps(Protocol):
    """The arguments are those of :class:`~vaswani_plugin.generation.ensemble.EnsembleDecoder`."""

    def __init__(self, model: Any, net_input: Mapping[str, Tensor], beam: int) -> None: ...

    def step(self, tokens: Tensor) -> Tensor: ...

    def reorder(self, sentences: Tensor, origins: Tensor) -> None: ...


class VaswaniSteps:
    """A model of this package, with the beam as the query length of its attention.

    The encoder's output and its keys and values are kept once per sentence. So are the keys and values of the target,
    those of all K hypotheses in one cache: a mask says which of them are a hypothesis's own past. When hypotheses
    change places only the mask does, never the cache.
    """

    def __init__(self, model: VaswaniTransformer, net_input: Mapping[str, Tensor], beam: int) -> None:
        self.encoder, self.decoder = model.encoder, model.decoder
        self.encoder_out = self.encoder(net_input["src_tokens"])
        self.caches = [LayerCache() for _ in self.decoder.stack.layers]
        device = net_input["src_tokens"].device
        self.own = torch.eye(beam, dtype=torch.bool, device=device)
        self.past_RKn = torch.zeros(net_input["src_tokens"].size(0), beam, 0, dtype=torch.bool, device=device)

    def step(self, tokens: Tensor) -> Tensor:
        rows, _, length = tokens.shape
        self.past_RKn = torch.cat([self.past_RKn, self.own.expand(rows, -1, -1)], dim=2)
        logits_RKV = self.decoder.step(tokens[:, :, -1], length - 1, self.past_RKn, self.encoder_out, self.caches)
        return logits_RKV.flatten(0, 1).float()

    def reorder(self, sentences: Tensor, origins: Tensor) -> None:
        self.past_RKn = self.past_RKn[sentences.unsqueeze(1), origins]
        if sentences.numel() < self.encoder_out["memory"].size(0):
            for cache in self.caches:
                cache.target.keep(sentences)
                cache.memory.keep(sentences)
            self.encoder_out = self.encoder.reorder_encoder_out(self.encoder_out, sentences)


class FairseqSteps:
    """Any model with fairseq's incremental interface, such as the stock architectures: a row per hypothesis."""

    def __init__(self, model: Any, net_input: Mapping[str, Tensor], beam: int) -> None:
        self.model = model
        source = {name: value for name, value in net_input.items() if name != "prev_output_tokens"}
        self.sentences = net_input["src_tokens"].size(0)
        rows = torch.arange(self.sentences, device=net_input["src_tokens"].device).repeat_interleave(beam)
        self.encoder_out = model.encoder.reorder_encoder_out(model.encoder.forward_torchscript(source), rows)
        self.state: dict[str, Any] = {}

    def step(self, tokens: Tensor) -> Tensor:
        output = self.model.decoder(tokens.flatten(0, 1), encoder_out=self.encoder_out, incremental_state=self.state)
        last = (output[0][:, -1:], *output[1:])
        return self.model.get_normalized_probs(last, log_probs=True)[:, -1].float()

    def reorder(self, sentences: Tensor, origins: Tensor) -> None:
        rows = (sentences.unsqueeze(1) * origins.size(1) + origins).flatten()
        self.model.decoder.reorder_incremental_state_scripting(self.state, rows)
        if sentences.numel() < self.sentences:
            self.encoder_out = self.model.encoder.reorder_encoder_out(self.encoder_out, rows)
            self.sentences = sentences.numel()
