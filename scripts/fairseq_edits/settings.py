# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of how values are read from settings and from strangers' files: none of them is code that is run."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Edit, Replace

_ADDED = Path(__file__).parent / "added"
_IMPORT = "from fairseq.plain_value import plain_value\n"

# file, the line of its imports that ours goes after, what it evaluated (and how often)
_EVALUATED: "tuple[tuple[str, str, dict[str, int]], ...]" = (
    ("fairseq/optim/adamax.py", "import torch.optim\n", {"eval(self.args.adamax_betas)": 1}),
    ("fairseq/optim/adafactor.py", "import torch.optim\n", {"eval(self.args.adafactor_eps)": 1}),
    (
        "fairseq/optim/fused_lamb.py",
        "from fairseq.optim import LegacyFairseqOptimizer, register_optimizer\n",
        {"eval(self.args.lamb_betas)": 1},
    ),
    ("fairseq/criterions/ctc.py", "from fairseq.data.data_utils import post_process\n", {"eval(cfg.wer_args)": 1}),
    (
        "fairseq/models/lightconv_lm.py",
        "from fairseq.models.lightconv import Embedding, LightConvDecoder\n",
        {"eval(args.character_filters)": 1},
    ),
    (
        "fairseq/models/transformer_lm.py",
        "from fairseq.modules import AdaptiveInput, CharacterTokenEmbedder\n",
        {"eval(args.character_filters)": 1},
    ),
    (
        "fairseq/models/hubert/hubert.py",
        "from fairseq.modules import GradMultiply, LayerNorm\n",
        {"eval(cfg.conv_feature_layers)": 1},
    ),
    (
        "fairseq/models/fconv_lm.py",
        "from fairseq.models.fconv import FConvDecoder\n",
        {"eval(args.decoder_layers)": 1, "eval(args.decoder_attention)": 1},
    ),
    (
        "fairseq/models/fconv.py",
        "import torch.nn.functional as F\n",
        {"eval(args.encoder_layers)": 1, "eval(args.decoder_layers)": 1, "eval(args.decoder_attention)": 1},
    ),
    (
        "fairseq/models/fconv_self_att.py",
        "from fairseq.incremental_decoding_utils import with_incremental_state\n",
        {
            f"eval(args.{name})": 1
            for name in (
                *("pretrained", "encoder_layers", "encoder_attention", "decoder_layers", "decoder_attention"),
                *("self_attention", "project_input", "gated_attention", "downsample"),
            )
        },
    ),
    (
        "fairseq/models/wav2vec/wav2vec2.py",
        "from fairseq.modules.checkpoint_activations import checkpoint_wrapper\n",
        {"eval(cfg.conv_feature_layers)": 1, "eval(self.cfg.conv_feature_layers)": 1},
    ),
    (
        "fairseq/models/wav2vec/wav2vec.py",
        "from fairseq.tasks import FairseqTask\n",
        {"eval(cfg.conv_feature_layers)": 1, "eval(cfg.conv_aggregator_layers)": 1},
    ),
    (
        "fairseq/models/speech_to_text/s2t_wav_transformer.py",
        "from fairseq.modules import GradMultiply, LayerNorm, SamePad, TransformerEncoderLayer\n",
        {"eval(args.conv_feature_layers)": 2},
    ),
    (
        "fairseq/data/audio/raw_audio_dataset.py",
        "from fairseq.data.text_compressor import TextCompressor, TextCompressionLevel\n",
        {'eval(mask_compute_kwargs["conv_feature_layers"])': 1},
    ),
    (
        "fairseq/data/codedataset.py",
        "from fairseq.data.fairseq_dataset import FairseqDataset\n",
        {"eval(line.strip())": 1},
    ),
    (
        "fairseq/utils.py",
        "import torch.nn.functional as F\n",
        {"        x = eval(x)\n": 2, "bool(eval(x))": 1},
    ),
    (
        "fairseq_cli/eval_lm.py",
        "from fairseq.sequence_scorer import SequenceScorer\n",
        {"eval(cfg.common_eval.model_overrides)": 1},
    ),
)

EDITS = [
    Edit(
        "plain-values",
        "settings were evaluated as Python, those of a checkpoint too: a stranger's ran what it liked once its model "
        "was built",
        AddFile("fairseq/plain_value.py", _ADDED / "plain_value.py"),
        *(
            Replace(file, old, old.replace("eval(", "plain_value("), count)
            for file, _, evaluated in _EVALUATED
            for old, count in evaluated.items()
        ),
        *(Replace(file, anchor, anchor + _IMPORT) for file, anchor, _ in _EVALUATED),
    ),
    Edit(
        "plain-yaml",
        "the configuration of a speech corpus was read with a loader that knows Python's objects",
        Replace(
            "fairseq/data/audio/data_cfg.py",
            "yaml.load(f, Loader=yaml.FullLoader)",
            "yaml.safe_load(f)",
        ),
    ),
    Edit(
        "archives",
        "an archive given to from_pretrained could write anywhere, by members such as ../../.bashrc",
        Replace(
            "fairseq/file_utils.py",
            "            archive.extractall(tempdir)\n",
            '            archive.extractall(tempdir, filter="data")\n',
        ),
    ),
    Edit(
        "names-in-shell-commands",
        "the name of a FASTA file was put into a shell command as it is",
        Replace(
            "fairseq/data/fasta_dataset.py",
            'f"cat {path} | tqdm --bytes --total $(wc -c < {path})"',
            'f"cat {shlex.quote(str(path))} | tqdm --bytes --total $(wc -c < {shlex.quote(str(path))})"',
            count=2,
        ),
        Replace(
            "fairseq/data/fasta_dataset.py",
            "import os\nimport subprocess\n",
            "import os\nimport shlex\nimport subprocess\n",
        ),
    ),
    Edit(
        "no-code-from-hydra",
        "hydra makes callbacks and log handlers of any function that a configuration names, before fairseq sees it",
        AddFile("fairseq/hydra_check.py", _ADDED / "hydra_check.py"),
        Replace(
            "fairseq_cli/hydra_train.py",
            "    hydra_main()\n\n\n",
            """\
    check_configuration(
        get_args(),
        os.path.dirname(__file__),
        os.path.join(os.path.dirname(utils.__file__), "config"),
    )
    hydra_main()


""",
        ),
        Replace(
            "fairseq_cli/hydra_train.py",
            "from fairseq.hydra_start import (\n",
            "from fairseq.hydra_check import check_configuration\nfrom fairseq.hydra_start import (\n",
        ),
    ),
]
