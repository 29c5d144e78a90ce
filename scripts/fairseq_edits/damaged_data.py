# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness around binarised data that is damaged: told before anything is computed with it."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Edit, Replace

_ADDED = Path(__file__).parent / "added"
_DATASET = "fairseq/data/indexed_dataset.py"

EDITS = [
    Edit(
        "damaged-data",
        "binarised data that was cut off or changed ended in assertions and in tracebacks of numpy and torch, or was "
        "trained on as other sentences",
        AddFile("fairseq/binarised_data.py", _ADDED / "binarised_data.py"),
        Replace(
            _DATASET,
            """\
    elif impl == "mmap" and MMapIndexedDataset.exists(path):
        return MMapIndexedDataset(path)
""",
            """\
    elif impl == "mmap" and MMapIndexedDataset.exists(path):
        check_binarised(
            path,
            MMapIndexedDataset.Index._HDR_MAGIC,
            _code_to_dtype,
            len(dictionary) if dictionary is not None else None,
        )
        return MMapIndexedDataset(path)
""",
        ),
        Replace(
            _DATASET,
            """\
            elif magic == HuffmanMMapIndex._HDR_MAGIC[:8]:
                return "huffman"
            else:
                return None
""",
            """\
            elif magic == HuffmanMMapIndex._HDR_MAGIC[:8]:
                return "huffman"
            raise UserError(
                f"{index_file_path(path)} cannot be used: it is not the index that fairseq-preprocess wrote, or was "
                "cut off; run fairseq-preprocess again, or copy the data again"
            )
""",
        ),
        Replace(
            _DATASET,
            "from fairseq.dataclass.constants import DATASET_IMPL_CHOICES\n",
            "from fairseq.binarised_data import check_binarised\n"
            "from fairseq.dataclass.constants import DATASET_IMPL_CHOICES\n",
        ),
        Replace(
            _DATASET,
            "from fairseq.file_io import PathManager\n",
            "from fairseq.file_io import PathManager\nfrom fairseq.user_error import UserError\n",
        ),
    ),
]
