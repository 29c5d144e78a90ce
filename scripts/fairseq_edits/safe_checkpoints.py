# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of how checkpoints are read: torch's safe loader with an allow-list, everywhere."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Edit, Replace

_ADDED = Path(__file__).parent / "added"
_IMPORT = "from fairseq.safe_load import safe_load\n"

EDITS = [
    Edit(
        "user-errors",
        "a mistake of the user ends in a traceback of thirty lines",
        AddFile("fairseq/user_error.py", _ADDED / "user_error.py"),
    ),
    Edit(
        "safe-load",
        "torch 2.6+ refuses fairseq's own checkpoints (argparse.Namespace), and loading with weights_only=False would "
        "run whatever a stranger's file asks for",
        AddFile("fairseq/safe_load.py", _ADDED / "safe_load.py"),
        # One file for both, because the plugin also runs on a fairseq that is not mended.
        AddFile("fairseq/plain_arrays.py", _ADDED / "plain_arrays.py"),
        AddFile("fairseq/checkpoint_members.py", _ADDED / "checkpoint_members.py"),
        Replace(
            "fairseq/checkpoint_utils.py",
            "from fairseq.models import FairseqDecoder, FairseqEncoder\n",
            "from fairseq.models import FairseqDecoder, FairseqEncoder\n"
            "from fairseq.safe_load import CheckpointError, safe_load\n",
        ),
        Replace(
            "fairseq/checkpoint_utils.py",
            """\
    with open(local_path, "rb") as f:
        state = torch.load(f, map_location=torch.device("cpu"))
""",
            """\
    state = safe_load(local_path, map_location=torch.device("cpu"))
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise CheckpointError(
            f"{path} holds no model, so it is not a fairseq checkpoint; name another file"
        )
""",
        ),
        Replace(
            "fairseq/checkpoint_utils.py",
            """\
        new_state = torch.load(
            f,
            map_location=(
                lambda s, _: torch.serialization.default_restore_location(s, "cpu")
            ),
        )
""",
            """\
        new_state = safe_load(f.name, map_location=torch.device("cpu"))
""",
        ),
        Replace(
            "fairseq/modules/quantization/pq/em.py",
            "torch.load(\n",
            "safe_load(\n",
            count=3,
        ),
        Replace("fairseq/modules/quantization/pq/em.py", "import torch\n", "import torch\n\n" + _IMPORT),
        Replace("fairseq/models/text_to_speech/vocoder.py", "torch.load(", "safe_load(", count=2),
        Replace(
            "fairseq/models/text_to_speech/vocoder.py",
            "from fairseq.models.text_to_speech.hifigan import Generator as HiFiGANModel\n",
            "from fairseq.models.text_to_speech.hifigan import Generator as HiFiGANModel\n" + _IMPORT,
        ),
        Replace("fairseq/models/speech_to_text/xm_transformer.py", "torch.load(", "safe_load("),
        Replace(
            "fairseq/models/speech_to_text/xm_transformer.py",
            "from fairseq.modules.layer_norm import LayerNorm\n",
            "from fairseq.modules.layer_norm import LayerNorm\n" + _IMPORT,
        ),
        Replace(
            "fairseq/data/codedataset.py",
            'torch.load(f"{manifest}.f0_stat.pt")',
            'safe_load(f"{manifest}.f0_stat.pt")',
        ),
        Replace("fairseq/data/codedataset.py", "torch.load(config.f0_stats)", "safe_load(config.f0_stats)"),
        Replace(
            "fairseq/data/codedataset.py",
            "torch.load(quantizers_path)",
            "safe_load(quantizers_path)",
        ),
        Replace(
            "fairseq/data/codedataset.py",
            "from fairseq.data.fairseq_dataset import FairseqDataset\n",
            "from fairseq.data.fairseq_dataset import FairseqDataset\n" + _IMPORT,
        ),
    ),
    Edit(
        "broadcast",
        "one worker sends its settings to the others as a pickle that torch.load refuses; it is not a file, and its "
        "tensors travel apart",
        Replace(
            "fairseq/distributed/utils.py",
            """\
        buffer = io.BytesIO()
        torch.save(obj, buffer)
        buffer = torch.ByteTensor(buffer.getbuffer()).to(dist_device)
""",
            """\
        buffer = torch.frombuffer(bytearray(pickle.dumps(obj)), dtype=torch.uint8)
        buffer = buffer.to(dist_device)
""",
        ),
        Replace(
            "fairseq/distributed/utils.py",
            """\
        buffer = io.BytesIO(buffer.cpu().numpy())
        obj = torch.load(buffer, map_location="cpu")
""",
            """\
        obj = pickle.loads(buffer.cpu().numpy().tobytes())
""",
        ),
        Replace("fairseq/distributed/utils.py", "import io\nimport logging\n", "import logging\n"),
    ),
]
