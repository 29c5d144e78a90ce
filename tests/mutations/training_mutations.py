"""Faults in the criterion, the schedule and the averaging of checkpoints: sections 5.3, 5.4 and 6.1."""

from mutation import Mutation

_AVERAGING = "checkpoints/averaging.py"
_CRITERION = "criterions/label_smoothing.py"
_PROJECTED = "criterions/projected_loss.py"
_MATCH = "models/checkpoint_match.py"
_SCHEDULE = "optim/inverse_sqrt.py"

_TEST_CHECKPOINTS = "unit/test_checkpoints.py"
_TEST_CRITERION = "unit/test_label_smoothing.py"
_TEST_COUNTS = "unit/test_label_smoothing_log.py"
_TEST_PROJECTED = "unit/test_projected_loss.py"
_TEST_MATCH = "unit/test_checkpoint_match.py"
_TEST_SCHEDULE = "unit/test_schedule.py"

TRAINING = [
    # 5.4 label smoothing
    Mutation(
        "epsilon / V",
        _CRITERION,
        "(possible_NV.sum(dim=1, dtype=exact) - 1.0)",
        "possible_NV.sum(dim=1, dtype=exact)",
        _TEST_CRITERION,
    ),
    Mutation(
        "smoothed over all ids but padding",
        _CRITERION,
        "all_ids_N = -log_probabilities_NV.where(possible_NV, 0.0).sum(dim=1)",
        "all_ids_N = -log_probabilities_NV.where(possible_NV, 0.0).sum(dim=1) + log_probabilities_NV[:, 1]",
        _TEST_CRITERION,
    ),
    Mutation(
        "gold token gets a share too",
        _CRITERION,
        "others_N = all_ids_N - gold_nll_N.masked_fill(gold_nll_N.isinf(), 0.0)",
        "others_N = all_ids_N",
        _TEST_CRITERION,
    ),
    Mutation(
        "smoothed nll",
        _CRITERION,
        "return loss_N.masked_fill(~is_token_BT.flatten(), 0.0).sum(), nll",
        "return (loss_N.masked_fill(~is_token_BT.flatten(), 0.0).sum(),) * 2",
        _TEST_CRITERION,
    ),
    Mutation(
        "padding counts in the smoothing",
        _CRITERION,
        "loss_N.masked_fill(~is_token_BT.flatten(), 0.0).sum()",
        "loss_N.sum()",
        _TEST_CRITERION,
    ),
    Mutation(
        "nll in nats",
        _CRITERION,
        'total("nll_loss") / max(num_tokens, 1) / math.log(2)',
        'total("nll_loss") / max(num_tokens, 1)',
        _TEST_COUNTS,
    ),
    Mutation(
        "loss in nats",
        _CRITERION,
        'total("loss") / max(sample_size, 1) / math.log(2)',
        'total("loss") / max(sample_size, 1)',
        _TEST_COUNTS,
    ),
    Mutation(
        "ignored prefix counted in the denominator",
        _CRITERION,
        "num_tokens = int(is_token_BT.sum())",
        'num_tokens = sample["ntokens"]',
        _TEST_COUNTS,
    ),
    Mutation(
        "padding counted as right",
        _CRITERION,
        "(log_probabilities_BTV.argmax(2).eq(target_BT) & is_token_BT)",
        "log_probabilities_BTV.argmax(2).eq(target_BT)",
        _TEST_COUNTS,
    ),
    Mutation(
        "ignored prefix counted in columns, not in tokens",
        _CRITERION,
        "is_token_BT.cumsum(dim=1) > self.ignore_prefix_size",
        "is_token_BT.new_ones(is_token_BT.shape).cumsum(dim=1) > self.ignore_prefix_size",
        _TEST_COUNTS,
    ),
    Mutation(
        "sentences without counted tokens in the mean",
        _CRITERION,
        "int(is_token_BT.any(dim=1).sum()) if self.sentence_avg",
        "num_sentences if self.sentence_avg",
        _TEST_COUNTS,
    ),
    Mutation(
        "ids that the model ruled out get a share",
        _CRITERION,
        "log_probabilities_NV.isneginf().logical_not_()",
        "torch.ones_like(log_probabilities_NV, dtype=torch.bool)",
        _TEST_CRITERION,
    ),
    Mutation(
        "log-probabilities summed in their own precision",
        _CRITERION,
        "exact = torch.promote_types(log_probabilities_BTV.dtype, torch.float32)",
        "exact = log_probabilities_BTV.dtype",
        _TEST_CRITERION,
    ),
    Mutation(
        "source sentences for source tokens",
        _CRITERION,
        'sample["net_input"]["src_lengths"].sum()',
        'len(sample["net_input"]["src_lengths"])',
        _TEST_COUNTS,
    ),
    # the same loss without the matrix of logits
    Mutation(
        "chunks: epsilon / V", _PROJECTED, "share = epsilon / (size - 1)", "share = epsilon / size", _TEST_PROJECTED
    ),
    Mutation("chunks: smoothed nll", _PROJECTED, "nll += token_nll", "nll += all_ids / size", _TEST_PROJECTED),
    Mutation(
        "chunks: gradient without the other ids' share",
        _PROJECTED,
        "gradient.sub_((share * is_token.to(exact)).unsqueeze(1))",
        "pass",
        _TEST_PROJECTED,
    ),
    Mutation(
        "chunks: gradient of the gold token",
        _PROJECTED,
        "excess = (share + epsilon - 1.0)",
        "excess = (epsilon - 1.0)",
        _TEST_PROJECTED,
    ),
    Mutation("chunks: gradient at padding", _PROJECTED, "(is_token / total)", "(1.0 / total)", _TEST_PROJECTED),
    Mutation(
        "chunks: matrix's gradient from the last chunk alone",
        _PROJECTED,
        "                _add_product(grad_weight, gradient.T",
        "                grad_weight.zero_()\n                _add_product(grad_weight, gradient.T",
        _TEST_PROJECTED,
    ),
    Mutation(
        "chunks: backward ignores what comes after",
        _PROJECTED,
        "gradient.mul_(gradients[0])",
        "gradient",
        _TEST_PROJECTED,
    ),
    Mutation(
        "chunks: gradients scaled a second time",
        _PROJECTED,
        "kept, ctx.gradients = ctx.gradients, None",
        "kept = ctx.gradients",
        _TEST_PROJECTED,
    ),
    Mutation(
        "chunks: gradient kept in float16",
        _PROJECTED,
        "torch.float32 if precision == torch.float16 else precision",
        "precision",
        _TEST_PROJECTED,
    ),
    Mutation(
        "chunks: softmax in half precision",
        _PROJECTED,
        "exact = torch.promote_types(weight_VD.dtype, torch.float32)",
        "exact = weight_VD.dtype",
        _TEST_PROJECTED,
    ),
    Mutation(
        "chunks: highest logit not subtracted",
        _PROJECTED,
        "logits.sub_(logits.amax(dim=1, keepdim=True))",
        "logits.sub_(0.0 * logits.amax(dim=1, keepdim=True))",
        _TEST_PROJECTED,
    ),
    # 5.3 learning rate
    Mutation(
        "schedule one update behind",
        _SCHEDULE,
        "rate = self.rate(num_updates + 1)",
        "rate = self.rate(max(num_updates, 1))",
        _TEST_SCHEDULE,
    ),
    Mutation("exponent of the warm-up", _SCHEDULE, "warmup_updates**-1.5", "warmup_updates**-1.0", _TEST_SCHEDULE),
    Mutation("rate without d_model", _SCHEDULE, "factor * d_model**-0.5 * min", "factor * min", _TEST_SCHEDULE),
    Mutation("linear decay", _SCHEDULE, "min(update**-0.5,", "min(update**-1.0,", _TEST_SCHEDULE),
    Mutation("no factor", _SCHEDULE, "return factor * d_model", "return d_model", _TEST_SCHEDULE),
    # 6.1 averaging
    Mutation("one checkpoint less", _AVERAGING, "return found[-last:]", "return found[1 - last :]", _TEST_CHECKPOINTS),
    Mutation(
        "checkpoints in alphabetical order",
        _AVERAGING,
        "sorted((int(match.group(1)), path)",
        "sorted((match.group(1), path)",
        _TEST_CHECKPOINTS,
    ),
    Mutation(
        "the last checkpoint twice",
        _AVERAGING,
        "_updates_of(final) > _updates_of(found[-1])",
        "_updates_of(final) >= _updates_of(found[-1])",
        _TEST_CHECKPOINTS,
    ),
    Mutation(
        "a tied matrix added once for each name",
        _AVERAGING,
        """        for name, total in sums.items():
            total += state["model"][name]
""",
        """        for name, owner in owners.items():
            sums[owner] += state["model"][name]
""",
        _TEST_CHECKPOINTS,
    ),
    Mutation(
        "averaged in the checkpoints' precision",
        _AVERAGING,
        'newest["model"][name].double()',
        'newest["model"][name].clone()',
        _TEST_CHECKPOINTS,
    ),
    Mutation(
        "averaged in float32",
        _AVERAGING,
        'newest["model"][name].double()',
        'newest["model"][name].float()',
        _TEST_CHECKPOINTS,
    ),
    # checkpoints that are not the model's
    Mutation(
        "a checkpoint's heads are taken for the model's",
        _MATCH,
        '_notes(weights).get("num_heads", num_heads)',
        "num_heads",
        _TEST_MATCH,
    ),
    Mutation(
        "dictionaries compared by their length alone",
        _MATCH,
        "sizes[0] != sizes[1] or (notes[0] and notes[0] != notes[1])",
        "sizes[0] != sizes[1]",
        _TEST_MATCH,
    ),
    Mutation(
        "only the source's dictionary is compared",
        _MATCH,
        "fingerprint(model.decoder.dictionary)",
        "fingerprint(model.encoder.dictionary)",
        _TEST_MATCH,
    ),
    Mutation(
        "several matrices taken for one",
        _MATCH,
        '_SHARING.index(theirs["--share-embeddings"]) > _SHARING',
        '_SHARING.index(theirs["--share-embeddings"]) < _SHARING',
        _TEST_MATCH,
    ),
    Mutation(
        "averaging loses what the weights do not show",
        _AVERAGING,
        'averaged["model"] = copy(newest["model"])',
        'averaged["model"] = dict(newest["model"])',
        _TEST_MATCH,
    ),
]
