"""The curves of a training: what was logged, and the paper's learning rate beside what was used."""

from typing import Optional

from vaswani_plugin.report.charts import Points, Series, chart
from vaswani_plugin.report.training_log import Statistics, TrainingLog

_FORMULA = "vaswani_inverse_sqrt"


def curves_section(log: Optional[TrainingLog]) -> str:
    """Loss, nll, perplexity, learning rate, tokens per second and BLEU over updates; nothing without a log."""
    if log is None:
        return ""

    def both(key: str) -> list[Series]:
        return [Series("training", points(log.training, key)), Series("validation", points(log.validation, key))]

    bleu = points(log.validation, "bleu")
    charts = [
        chart("Loss in bits", both("loss")),
        chart("nll in bits", both("nll_loss")),
        chart("Perplexity", both("ppl"), logarithmic=True),
        learning_rate_chart(log),
        chart("Target tokens per second", [Series("training", points(log.training, "wps"))]),
        *([chart("Development BLEU", [Series("at each validation", bleu)])] if bleu else ()),
    ]
    note = "" if bleu else '<p class="quiet">No development BLEU was logged; fairseq\'s --eval-bleu logs it.</p>'
    return f'<h2>Curves</h2>\n<div class="charts">{"".join(charts)}</div>{note}'


def points(entries: list[Statistics], key: str) -> Points:
    return [(entry["num_updates"], entry[key]) for entry in entries if key in entry]


def learning_rate_chart(log: TrainingLog) -> str:
    """The logged rates as dots on the schedule's formula, where its settings are in the log."""
    logged = points(log.training, "lr")
    formula = formula_points(log, [update for update, _ in logged])
    if not formula:
        return chart("Learning rate", [Series("logged", logged)])
    difference = max(abs(rate / expected - 1) for (_, rate), (_, expected) in zip(logged, formula))
    peak = max(rate for _, rate in formula)
    agree = (
        "the logged rates agree with it" if difference < 1e-4 else f"the logged rates differ by up to {difference:.1%}"
    )
    note = f"The formula is equation 3 of the paper with this run's settings; its peak so far is {peak:.3g}; {agree}."
    return chart("Learning rate", [Series("formula", formula), Series("logged", logged, dots=True)], note=note)


def formula_points(log: TrainingLog, updates: list[float]) -> Points:
    """Equation 3 at ``updates``. fairseq logs, after n updates, the rate of update n + 1."""
    settings = {**log.schedule, "d_model": log.model.get("d_model", "")}
    if settings.get("_name") != _FORMULA:
        return []
    try:
        width, warmup, factor = int(settings["d_model"]), int(settings["warmup_updates"]), float(settings["lr_factor"])
    except (KeyError, ValueError):
        return []

    from vaswani_plugin.optim.inverse_sqrt import learning_rate

    return [(update, learning_rate(int(update) + 1, width, warmup, factor)) for update in updates]
