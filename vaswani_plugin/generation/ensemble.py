"""One or more models that decode together, step by step, over the rows of a beam."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


class EnsembleDecoder:
    """Probabilities averaged over the models, for a row per hypothesis: sentence r's are rows r K to r K + K - 1.

    Uses only fairseq's own model interface, so stock architectures work too.

    Args:
        net_input: a batch's source, as fairseq's datasets collate it.
        beam: K, hypotheses per sentence.
    """

    def __init__(self, models: Sequence[Any], net_input: Mapping[str, Tensor], beam: int) -> None:
        self.models = models
        source = {name: value for name, value in net_input.items() if name != "prev_output_tokens"}
        sentences = torch.arange(net_input["src_tokens"].size(0), device=net_input["src_tokens"].device)
        rows = sentences.repeat_interleave(beam)
        self.encoder_outs = [
            model.encoder.reorder_encoder_out(model.encoder.forward_torchscript(source), rows) for model in models
        ]
        self.states: list[dict[str, Any]] = [{} for _ in models]

    def step(self, prefixes: Tensor) -> Tensor:
        """Prefixes (rows, n), one token longer than at the step before -> log-probabilities (rows, V) in float32."""
        each = []
        for model, encoder_out, state in zip(self.models, self.encoder_outs, self.states):
            output = model.decoder(prefixes, encoder_out=encoder_out, incremental_state=state)
            last = (output[0][:, -1:], *output[1:])
            each.append(model.get_normalized_probs(last, log_probs=True)[:, -1].float())
        if len(each) == 1:
            return each[0]
        return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))

    def reorder(self, rows: Tensor, sentences_left: bool) -> None:
        """Continue with ``rows`` of the step before; the sources move only when sentences left the batch."""
        for model, state in zip(self.models, self.states):
            model.decoder.reorder_incremental_state_scripting(state, rows)
        if sentences_left:
            self.encoder_outs = [
                model.encoder.reorder_encoder_out(encoder_out, rows)
                for model, encoder_out in zip(self.models, self.encoder_outs)
            ]
