# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of how fairseq-preprocess binarises: its memory for a large corpus, and the use of its workers."""

from fairseq_edits.edit import Cut, Edit, Replace

_BINARIZER = "fairseq/binarizer.py"
_DATASET = "fairseq/data/indexed_dataset.py"
_DICTIONARY = "fairseq/data/dictionary.py"

EDITS = [
    Edit(
        "index-memory",
        "lengths and addresses of all sentences were Python objects in lists: gigabytes for a corpus of 40 million",
        Cut(
            _DATASET,
            "                @staticmethod\n                def _get_pointers(sizes):\n",
            "                def __exit__(self, exc_type, exc_val, exc_tb):\n"
            "                    self._file.close()\n\n"
            "            return _Writer()\n",
            """\
                def write(self, sizes):
                    sizes = np.asarray(sizes, dtype=np.int32)
                    self._file.write(struct.pack("<Q", len(sizes)))
                    self._file.write(sizes.tobytes(order="C"))

                    address = 0
                    for start in range(0, len(sizes), 2**20):
                        lengths = sizes[start : start + 2**20].astype(np.int64) * dtype().itemsize
                        ends = address + lengths.cumsum()
                        self._file.write((ends - lengths).tobytes(order="C"))
                        address = int(ends[-1])

""",
        ),
        Replace(
            _DATASET,
            "    def __init__(self, out_file, dtype=np.int64):\n"
            '        self._data_file = open(out_file, "wb")\n'
            "        self._dtype = dtype\n"
            "        self._sizes = []\n",
            "    def __init__(self, out_file, dtype=np.int64):\n"
            '        self._data_file = open(out_file, "wb")\n'
            "        self._dtype = dtype\n"
            '        self._sizes = array("i")\n',
        ),
        Replace(
            _DATASET,
            "        for size in index.sizes:\n            self._sizes.append(size)\n",
            "        self._sizes.frombytes(index.sizes.view(np.uint8))\n",
        ),
        Replace(_DATASET, "import shutil\nimport struct\n", "import shutil\nimport struct\nfrom array import array\n"),
    ),
    Edit(
        "all-workers-at-once",
        "the first of the workers began when all others had ended, so that two took as long as one",
        Replace(_BINARIZER, "        pool = None\n", "        pool, worker_results = None, []\n"),
        Cut(
            _BINARIZER,
            "            pool.close()\n            pool.join()\n",
            "        if num_workers > 1:\n            for worker_id in range(1, num_workers):\n",
            """\
            pool.close()

        try:
            # do not close the bin file as we need to merge the worker results in
            final_ds, summ = cls._binarize_file_chunk(
                binarizer,
                input_file,
                offset_start=first_chunk[0],
                offset_end=first_chunk[1],
                output_prefix=output_prefix,
                dataset_impl=dataset_impl,
                vocab_size=vocab_size if vocab_size is not None else None,
            )
            final_summary.merge(summ)
            for r in worker_results:
                final_summary.merge(r.get())
        finally:
            if pool is not None:
                pool.terminate()
                pool.join()

""",
        ),
    ),
    Edit(
        "encode-line-at-once",
        "writing a tensor element by element took most of the time of binarising",
        Cut(
            _DICTIONARY,
            "        nwords = len(words)\n        ids = torch.IntTensor(nwords + 1 if append_eos else nwords)\n",
            "    @staticmethod\n    def _add_file_to_dictionary_single_worker(\n",
            """\
        ids = []

        for word in words:
            if add_if_not_exist:
                idx = self.add_symbol(word)
            else:
                idx = self.index(word)
            if consumer is not None:
                consumer(word, idx)
            ids.append(idx)
        if append_eos:
            ids.append(self.eos_index)
        return torch.IntTensor(ids)

""",
        ),
    ),
]
