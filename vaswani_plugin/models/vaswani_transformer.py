"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017, arXiv 1706.03762) as a fairseq model."""

from collections.abc import Mapping
from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel, register_model
from torch import Tensor, nn

from vaswani_plugin.errors import UserError
from vaswani_plugin.models.checkpoint_match import check_match, record_what_weights_do_not_show
from vaswani_plugin.models.config import VaswaniTransformerConfig
from vaswani_plugin.models.sequence_decoder import SequenceDecoder
from vaswani_plugin.models.sequence_encoder import UNLIMITED_LENGTH, SequenceEncoder
from vaswani_plugin.modules import Decoder, Embedding, Encoder, LearnedPositions, SinusoidalPositions
from vaswani_plugin.modules.linear import Linear, give_up_packed, pack


@register_model("vaswani_transformer", dataclass=VaswaniTransformerConfig)
class VaswaniTransformer(FairseqEncoderDecoderModel):
    """Encoder and decoder of figure 1; what the paper leaves open follows the code released with it."""

    # fairseq's --print-alignment then reads the attention of one pass over the finished translation.
    full_context_alignment = True

    def __init__(self, config: VaswaniTransformerConfig, encoder: SequenceEncoder, decoder: SequenceDecoder) -> None:
        super().__init__(encoder, decoder)
        self.cfg = config
        self.register_state_dict_post_hook(record_what_weights_do_not_show)

    @property
    def pre_softmax_matrix(self) -> Tensor:
        """(V, D): logits are features times its transpose. The criterion uses it to never hold all logits."""
        return self.decoder.output_embedding.weight

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "VaswaniTransformer":
        """Build the model for a task's two dictionaries.

        Raises:
            ValueError: sizes that do not fit together, or embeddings that cannot be shared.
        """
        fields = VaswaniTransformerConfig.__dataclass_fields__
        config = VaswaniTransformerConfig(**{name: cfg[name] for name in fields if name in cfg and name != "_name"})
        layer = config.layer_config()
        source, target = task.source_dictionary, task.target_dictionary
        source_embedding, target_embedding, output_embedding = build_embeddings(config, source, target)
        max_source, max_target = UNLIMITED_LENGTH, UNLIMITED_LENGTH
        if config.learned_positions:
            max_source, max_target = config.max_source_positions, config.max_target_positions

        def positions(max_length: int) -> nn.Module:
            if config.learned_positions:
                return LearnedPositions(max_length, config.d_model)
            return SinusoidalPositions(config.d_model)

        encoder = SequenceEncoder(
            source,
            source_embedding,
            positions(max_source),
            Encoder(config.num_layers, layer),
            config.dropout,
            max_source,
        )
        decoder = SequenceDecoder(
            target,
            target_embedding,
            output_embedding,
            positions(max_target),
            Decoder(config.num_layers, layer),
            config.dropout,
            max_target,
        )
        return cls(config, encoder, decoder)

    @classmethod
    def from_pretrained(
        cls, model_dir: Any, checkpoint_file: str = "model.pt", data_name_or_path: Any = ".", **settings: Any
    ) -> Any:
        """A trained model that translates raw text: ``from_pretrained(folder).translate("Hello world.")``.

        A folder made by ``vaswani package`` needs nothing else.

        Args:
            model_dir: folder of the checkpoint.
            checkpoint_file: its name; several, separated by ``:``, are an ensemble.
            data_name_or_path: folder of the dictionaries; one that begins with "." counts from ``model_dir``.
            settings: what fairseq's flags would set, such as ``bpe="sentencepiece"``, ``sentencepiece_model=FILE``,
                ``length_penalty_alpha=1.0``, ``source_lang="en"``.

        Returns:
            A :class:`vaswani_plugin.inference.translator.Translator`, fairseq's hub interface.

        Raises:
            ValueError: a file that is missing or damaged, or does not go with the others; the sentence names it.
        """
        # What uses a model is no part of it, and is imported only where it is used.
        from vaswani_plugin.inference.loading import load_translator

        return load_translator(model_dir, checkpoint_file, data_name_or_path, **settings)

    def prepare_for_inference_(self, cfg: Any) -> None:
        """What fairseq's tools call before translating: the matrices also in the order that multiplies fastest."""
        super().prepare_for_inference_(cfg)
        if getattr(cfg.task, "int8", False) or getattr(cfg.task, "mixed_precision", False):
            return  # then other matrices are multiplied
        for module in self.modules():
            if isinstance(module, Linear):
                pack(module.weight)
        pack(self.pre_softmax_matrix)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        give_up_packed(self)  # of .half(), .cuda() and the like
        return super()._apply(*args, **kwargs)

    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], strict: bool = True, model_cfg: Any = None, args: Any = None
    ) -> Any:
        """fairseq's, after a comparison with this model.

        Raises:
            CheckpointMismatch: a ValueError; the weights are another model's or go with other dictionaries.
        """
        check_match(self, state_dict)
        return super().load_state_dict(state_dict, strict, model_cfg, args)

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, **kwargs: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """Source (B, S) and shifted target (B, T) ids -> logits (B, T, V) and {"attn": ...}."""
        encoder_out = self.encoder(src_tokens, src_lengths)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, **kwargs)


def build_embeddings(
    config: VaswaniTransformerConfig, source: Dictionary, target: Dictionary
) -> tuple[Embedding, Embedding, Embedding]:
    """Source, target and pre-softmax matrices (section 3.4): one, two or three different objects."""

    def embedding(dictionary: Dictionary) -> Embedding:
        return Embedding(len(dictionary), config.d_model, dictionary.pad())

    sharing = str(config.share_embeddings)
    if sharing == "all" and source != target:
        raise UserError(
            f"--share-embeddings all needs one dictionary for both languages, but the source's has {len(source)} "
            f"entries and the target's {len(target)}, not the same ones: run fairseq-preprocess again with "
            "--joined-dictionary, or train with --share-embeddings decoder"
        )
    source_embedding = embedding(source)
    target_embedding = source_embedding if sharing == "all" else embedding(target)
    output_embedding = embedding(target) if sharing == "none" else target_embedding
    return source_embedding, target_embedding, output_embedding
