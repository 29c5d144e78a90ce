"""Faults in the search and in the task's choice of it: section 6.1."""

from mutation import Mutation

_SEARCH = "generation/beam_search.py"
_ENSEMBLE = "generation/ensemble.py"
_STEPS = "generation/model_steps.py"
_PENALTY = "generation/length_penalty.py"
_TASK = "tasks/vaswani_translation.py"

_TEST_SEARCH = "unit/test_beam_search.py"
_TEST_STEPS = "unit/test_model_steps.py"
_TEST_TASK = "unit/test_task.py"
_PLAIN = f"{_TEST_SEARCH}::test_plain_search_finds_the_same"

SEARCH = [
    # length penalty
    Mutation(
        "penalty without + 5",
        _PENALTY,
        "((5 + length) / 6) ** alpha",
        "length**alpha",
        "unit/test_schedule.py::test_length_penalty_vector",
    ),
    Mutation("penalty divided by 5", _PENALTY, "/ 6) **", "/ 5) **", "unit/test_schedule.py"),
    Mutation("alpha ignored", _PENALTY, "** alpha", "** 0.6", "unit/test_schedule.py"),
    Mutation(
        "penalty of the length without </s>",
        _SEARCH,
        "penalty = length_penalty(length, self.rules.settings.alpha)",
        "penalty = length_penalty(length - 1, self.rules.settings.alpha)",
        f"{_TEST_SEARCH}::test_scores_of_tokens_add_up",
    ),
    # candidates
    Mutation(
        "finished only among the best K",
        _SEARCH,
        "(ends & log_p.gt(-math.inf)).nonzero()",
        "(ends & log_p.gt(-math.inf))[:, : self.beam].nonzero()",
        _PLAIN,
    ),
    Mutation(
        "K candidates instead of 2 K",
        _SEARCH,
        "2 * self.beam if self.beam > 1 else 1",
        "self.beam",
        _PLAIN,
    ),
    Mutation(
        "a beam of one that is not greedy",
        _SEARCH,
        "2 * self.beam if self.beam > 1 else 1",
        "2 * self.beam",
        f"{_TEST_SEARCH}::test_a_beam_of_one_is_greedy",
    ),
    Mutation("all finished hypotheses kept", _SEARCH, "del pool[self.beam :]", "pass", _PLAIN),
    Mutation(
        "padding may be chosen",
        _SEARCH,
        "tokens.eq(self.rules.pad) | tokens.eq(self.rules.bos)",
        "tokens.eq(self.rules.bos)",
        _PLAIN,
    ),
    Mutation("forbidden tokens take others' places", _SEARCH, "2 * self.beam + 3", "2 * self.beam", _PLAIN),
    Mutation("logits not normalised", _SEARCH, "best = best - log_total", "pass", _PLAIN),
    Mutation(
        "normalised by the likeliest tokens of another row",
        "generation/candidates.py",
        "highest + total.log()",
        "highest.max() + total.log()",
        _PLAIN,
    ),
    Mutation(
        "log-probabilities of every chunk but the last forgotten",
        "generation/candidates.py",
        "torch.cat(log_total)",
        "log_total[-1].expand(logits_NV.size(0), 1)",
        "unit/test_candidates.py",
    ),
    Mutation(
        "logits after the last whole block forgotten",
        "generation/candidates.py",
        "logits_NV[:, whole:]]",
        "logits_NV[:, whole:] - 1e9]",
        "unit/test_candidates.py",
    ),
    # stopping
    Mutation(
        "stops before a longer hypothesis can win",
        _SEARCH,
        "max(length_penalty(next_length, alpha), length_penalty(limit + 1, alpha))",
        "length_penalty(next_length, alpha)",
        _PLAIN,
    ),
    Mutation(
        "stops when enough are finished",
        _SEARCH,
        '(len(pool) < nbest or best / penalty > float(pool[nbest - 1]["score"]))',
        "len(pool) < nbest",
        _PLAIN,
    ),
    Mutation(
        "stop rule looks at the best finished one whatever --nbest", _SEARCH, "pool[nbest - 1]", "pool[0]", _PLAIN
    ),
    # lengths
    Mutation(
        "longest output of the batch",
        _SEARCH,
        "(self.settings.max_len_a * lengths.double())",
        "(self.settings.max_len_a * lengths.max().expand_as(lengths).double())",
        f"{_TEST_SEARCH}::test_longest_output_follows_each_sentences_own_length",
    ),
    Mutation(
        "</s> counted in the source's length",
        _SEARCH,
        "(source.ne(self.pad) & source.ne(self.eos))",
        "source.ne(self.pad)",
        f"{_TEST_SEARCH}::test_longest_output_follows_each_sentences_own_length",
    ),
    Mutation(
        "shortest output one token longer",
        _SEARCH,
        "if length < self.rules.settings.min_len:",
        "if 0 < self.rules.settings.min_len >= length:",
        f"{_TEST_SEARCH}::test_shortest_output_is_among_the_longer_ones",
    ),
    Mutation(
        "blank line is translated",
        _SEARCH,
        ".masked_fill(lengths.eq(0), 0)",
        "",
        f"{_TEST_SEARCH}::test_blank_line_stays_blank_whatever_the_model_prefers",
    ),
    # what is kept between the steps
    Mutation(
        "past of a hypothesis not reordered",
        _STEPS,
        "self.past_RKn[sentences.unsqueeze(1), origins]",
        "self.past_RKn[sentences]",
        _TEST_STEPS,
    ),
    Mutation(
        "fairseq's incremental state: every hypothesis continues the first",
        _STEPS,
        "* origins.size(1) + origins)",
        "* origins.size(1) + origins * 0)",
        _TEST_STEPS,
    ),
    Mutation(
        "keys and values of a sentence that left",
        "modules/cache.py",
        "tensor[moved] = tensor[rows[moved]]",
        "pass",
        _TEST_STEPS,
    ),
    Mutation(
        "keys and values not reordered",
        "modules/cache.py",
        "keys.index_select(0, rows), values.index_select(0, rows)",
        "keys, values",
        "unit/test_model.py",
    ),
    Mutation(
        "every step at position 0 in the beam search",
        "models/sequence_decoder.py",
        "embedded_BKD + table[:, -1:]",
        "embedded_BKD + table[:, :1]",
        _TEST_STEPS,
    ),
    # ensembles
    Mutation(
        "log-probabilities averaged instead of probabilities",
        _ENSEMBLE,
        "torch.logsumexp(log_p, dim=0) - math.log(len(each))",
        "log_p.mean(dim=0)",
        _PLAIN,
    ),
    Mutation(
        "alignment of the first model alone",
        "generation/alignment.py",
        ").mean(dim=0)",
        ")[0]",
        "unit/test_alignments.py",
    ),
    # the task's defaults
    Mutation("beam 5", _TASK, '"beam": 4', '"beam": 5', _TEST_TASK),
    Mutation("outputs up to + 200", _TASK, '"max_len_b": 50', '"max_len_b": 200', _TEST_TASK),
    Mutation(
        "alpha 1",
        _TASK,
        "length_penalty_alpha: float = field(\n        default=0.6",
        "length_penalty_alpha: float = field(\n        default=1.0",
        _TEST_TASK,
    ),
    Mutation(
        "fairseq's search without the paper's penalty",
        "generation/fairseq_search.py",
        ' / length_penalty(len(hypothesis["tokens"]), self.alpha)',
        "",
        "unit/test_task.py",
    ),
]
