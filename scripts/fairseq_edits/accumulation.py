# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends --update-freq: what is counted for an update, and the groups of batches that are left after a resume."""

from fairseq_edits.edit import Edit, Replace

_TRAINER = "fairseq/trainer.py"

EDITS = [
    Edit(
        "partly-dummy-updates",
        "a worker whose last batch of an update is a dummy counted as if all of them were: too large a gradient",
        Replace(
            _TRAINER,
            """\
                logging_outputs.append(logging_output)
                sample_size += sample_size_i
""",
            """\
                if not is_dummy_batch:
                    logging_outputs.append(logging_output)
                    sample_size += sample_size_i
""",
        ),
        Replace(
            _TRAINER,
            """\
        if is_dummy_batch:
            if torch.is_tensor(sample_size):
                sample_size.zero_()
            else:
                sample_size *= 0.0

        if torch.is_tensor(sample_size):
            sample_size = sample_size.float()
""",
            """\
        only_dummies = len(logging_outputs) == 0 and ooms == 0
        if only_dummies:
            # zeros under the names that the other workers sum up
            logging_outputs, sample_size = [logging_output], sample_size_i * 0

        if torch.is_tensor(sample_size):
            sample_size = sample_size.float()
""",
        ),
        Replace(
            _TRAINER,
            "logging_outputs, sample_size, ooms, train_time, ignore=is_dummy_batch",
            "logging_outputs, sample_size, ooms, train_time, ignore=only_dummies",
        ),
    ),
    Edit(
        "groups-after-a-resume",
        "within an epoch and with another --update-freq, batches were left out, or no update was left to make",
        Replace(
            "fairseq/data/iterators.py",
            """\
        if skip_remainder_batch:
            total_num_itrs = int(math.floor(len(iterable) / float(chunk_size)))
            logger.info(
                f"skip final residual batch, grouped total_num_itrs = {total_num_itrs}"
            )
        else:
            total_num_itrs = int(math.ceil(len(iterable) / float(chunk_size)))
            logger.info(f"grouped total_num_itrs = {total_num_itrs}")
""",
            """\
        consumed = getattr(iterable, "n", 0)
        start = int(math.ceil(consumed / float(chunk_size)))
        groups_left = (len(iterable) - consumed) / float(chunk_size)
        if skip_remainder_batch:
            total_num_itrs = start + int(math.floor(groups_left))
            logger.info(
                f"skip final residual batch, grouped total_num_itrs = {total_num_itrs}"
            )
        else:
            total_num_itrs = start + int(math.ceil(groups_left))
            logger.info(f"grouped total_num_itrs = {total_num_itrs}")
""",
        ),
        Replace(
            "fairseq/data/iterators.py",
            """\
            start=int(math.ceil(getattr(iterable, "n", 0) / float(chunk_size))),
            total=total_num_itrs,
""",
            """\
            start=start,
            total=total_num_itrs,
""",
        ),
    ),
    Edit(
        "workers-after-a-resume",
        "within an epoch and with another number of workers, batches came twice in it or not at all: the place was "
        "counted in the batches of one worker",
        Replace(
            "fairseq/data/iterators.py",
            """\
            "version": 2,
            "epoch": epoch,
            "iterations_in_epoch": iter_in_epoch,
            "shuffle": self.shuffle,
        }

    def load_state_dict(self, state_dict):
        \"\"\"Copies the state of the iterator from the given *state_dict*.\"\"\"
        self.epoch = state_dict["epoch"]
        itr_pos = state_dict.get("iterations_in_epoch", 0)
        version""",
            """\
            "version": 2,
            "epoch": epoch,
            "iterations_in_epoch": iter_in_epoch,
            "num_shards": self.num_shards,
            "shuffle": self.shuffle,
        }

    def load_state_dict(self, state_dict):
        \"\"\"Copies the state of the iterator from the given *state_dict*.\"\"\"
        self.epoch = state_dict["epoch"]
        # rounded down, so that none is left out
        all_workers = state_dict.get("iterations_in_epoch", 0) * state_dict.get(
            "num_shards", self.num_shards
        )
        itr_pos = all_workers // self.num_shards
        version""",
        ),
    ),
]
