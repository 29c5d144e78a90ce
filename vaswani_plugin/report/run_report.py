"""The report itself: sections of a page, each of which says what is missing where something is."""

import json
import platform
import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Optional

import vaswani_plugin
from vaswani_plugin.errors import UserError
from vaswani_plugin.figures.attention_page import SCRIPT, attention_section
from vaswani_plugin.figures.attention_page import STYLE as ATTENTION_STYLE
from vaswani_plugin.figures.web_page import escape, page
from vaswani_plugin.report.charts import STYLE as CHART_STYLE
from vaswani_plugin.report.curves import curves_section
from vaswani_plugin.report.run_folder import RunFolder, find_run
from vaswani_plugin.report.samples import Sample, read_samples, spread, worst
from vaswani_plugin.report.training_log import TrainingLog, read_training_log

SAMPLES, WORST = 20, 10
# Words of the sentence whose attention is shown: enough for something to be seen, few enough for a phone.
_FEWEST_WORDS, _MOST_WORDS = 5, 14
_STYLE = """
.pair { margin: .75rem 0; padding-left: .75rem; border-left: 3px solid var(--line); }
.pair p { margin: 0; } .pair b { font-weight: 400; color: var(--quiet); display: inline-block; min-width: 5.5rem; }
.emphasised { color: var(--bad); font-weight: 600; }
details > summary { cursor: pointer; } .status { font-size: 1.1rem; }
"""


def run_report(path: Path) -> str:
    """The page about the run in ``path``, as it stands.

    Raises:
        ValueError: there is no run there.
    """
    run = find_run(path)
    log = read_training_log(run.log) if run.log else None
    samples = read_samples(run.translations) if run.translations else []
    name = run.path.resolve().name
    attention, script = attention_of_run(run, samples)
    body = "\n".join(
        [
            f"<main>\n<h1>{escape(name)}</h1>",
            status_section(run, log),
            curves_section(log),
            scores_section(run),
            audit_section(run),
            attention,
            samples_section(samples),
            origin_section(run, log),
            "</main>",
        ]
    )
    return page(f"{name}: training report", body, CHART_STYLE + ATTENTION_STYLE + _STYLE, script)


def status_section(run: RunFolder, log: Optional[TrainingLog]) -> str:
    if log is None:
        return (
            '<p class="status">No log of the training here, so there are no curves: keep one with '
            "<code>--log-file</code>.</p>"
        )
    of = f" of {log.max_update:,}" if log.max_update else ""
    if log.finished:
        state = f"Finished after {log.updates:,} updates, {escape(log.first_time)} to {escape(log.last_time)}."
    elif log.updates:
        state = f"{log.updates:,}{of} updates; the log's last line is of {escape(log.last_time)}."
    else:
        state = f"No update logged yet; the log's last line is of {escape(log.last_time)}."
    parts = [f'<p class="status">{state}</p>']
    if log.remarks:
        text = "\n".join(log.remarks)
        shown = "" if log.finished else " open"
        parts.append(
            f"<details{shown}><summary>Warnings and errors in the log, the last lines</summary>"
            f"<pre>{escape(text)}</pre></details>"
        )
    return "\n".join(parts)


def scores_section(run: RunFolder) -> str:
    if run.scores is None:
        return '<h2>Scores</h2>\n<p class="quiet">No score.json yet.</p>'
    try:
        scores: Any = json.loads(run.scores.read_bytes())
    except (ValueError, RecursionError) as error:
        return f'<h2>Scores</h2>\n<p class="bad">{escape(run.scores.name)} is not JSON: {escape(error)}</p>'
    rows = [
        (name, f"{score['score']:.2f}", score.get("signature", ""))
        for name, score in (scores.items() if isinstance(scores, dict) else ())
        if isinstance(score, dict) and isinstance(score.get("score"), int | float)
    ]
    if not rows:
        return f'<h2>Scores</h2>\n<p class="bad">{escape(run.scores.name)} holds no score.</p>'
    return f"<h2>Scores</h2>\n{table([('metric', 'score', 'signature'), *rows])}"


def audit_section(run: RunFolder) -> str:
    """The training beside the paper's; what differs first catches the eye."""
    heading = "<h2>Beside the paper's training</h2>\n"
    if not run.has_checkpoint:
        return f'{heading}<p class="quiet">Shown once there is a checkpoint.</p>'

    from vaswani_plugin.audit.comparison import audit_subject

    try:
        audit = audit_subject([str(run.path)])
    except UserError as error:
        return f'{heading}<p class="quiet">Not shown: {escape(error)}</p>'
    told = sum(detail.same is not None for detail in audit.details)
    return (
        f"{heading}<p>{len(audit.differences)} of {told} details differ from the paper's {escape(audit.paper.name)} "
        f"model.</p>\n{table(audit.rows(), emphasised='DIFFERENT')}"
    )


def attention_of_run(run: RunFolder, samples: list[Sample]) -> tuple[str, str]:
    """The section with one sentence's attention, and the script that it needs."""
    heading = "<h2>Attention</h2>\n"
    if not samples or not run.has_checkpoint:
        return f'{heading}<p class="quiet">Shown once there are a checkpoint and translations.</p>', ""
    sample = next((one for one in spread(samples, SAMPLES) if fits(one)), next(filter(fits, samples), samples[0]))
    try:
        maps, target = maps_of_run(run.path, sample.source)
    except UserError as error:
        return f'{heading}<p class="quiet">Not shown: {escape(error)}</p>', ""
    sentences = f"<p>{escape(sample.source)}<br>{escape(target)}</p>"
    return f"{heading}{sentences}\n{attention_section(maps)}", SCRIPT


def fits(sample: Sample) -> bool:
    return _FEWEST_WORDS <= len(sample.source.split()) <= _MOST_WORDS


def maps_of_run(run: Path, sentence: str) -> tuple[Any, str]:
    """Maps by the run's averaged or newest checkpoint."""
    from vaswani_plugin.figures.attention_maps import maps_of_sentence
    from vaswani_plugin.inference.loading import open_model
    from vaswani_plugin.inference.packaging import package

    with tempfile.TemporaryDirectory() as folder:
        package(run, Path(folder) / "model")
        return maps_of_sentence(open_model(Path(folder) / "model"), sentence)


def samples_section(samples: list[Sample]) -> str:
    if not samples:
        return '<h2>Translations</h2>\n<p class="quiet">No output of fairseq-generate yet.</p>'
    shown = spread(samples, SAMPLES)
    mean = sum(sample.chrf for sample in samples) / len(samples)
    return "\n".join(
        [
            f"<h2>Translations</h2>\n<p>{len(shown)} of {len(samples):,} sentences, evenly over the test set. "
            f"The mean of all sentences' chrF is {mean:.1f}.</p>",
            *map(_pair, shown),
            f"<h2>The {min(WORST, len(samples))} worst by chrF</h2>",
            *map(_pair, worst(samples, WORST)),
        ]
    )


def _pair(sample: Sample) -> str:
    rows = (("source", sample.source), ("reference", sample.reference), ("ours", sample.translation))
    lines = "".join(f"<p><b>{name}</b>{escape(text)}</p>" for name, text in rows)
    return f'<div class="pair">{lines}<p class="quiet">sentence {sample.number}, chrF {sample.chrf:.1f}</p></div>'


def origin_section(run: RunFolder, log: Optional[TrainingLog]) -> str:
    now = f"{datetime.now():%Y-%m-%d %H:%M:%S}"
    made = f"{now}, vaswani_plugin {vaswani_plugin.__version__}, Python {platform.python_version()}"
    rows = [("folder", str(run.path.resolve()))]
    if log is not None:
        rows += [("log", str(log.path)), ("trained with", log.versions or "the log does not tell")]
    parts = [f"<h2>Where it comes from</h2>\n{table([*rows, ('this page', made)])}"]
    if log is not None:
        command = log.command or "The log does not tell: it was not written by --task vaswani_translation."
        parts.append(f"<h3>Command</h3>\n<pre>{escape(command)}</pre>")
        settings = {**log.optimization, **log.schedule, **log.model}
        listed = "\n".join(f"{name} = {value}" for name, value in sorted(settings.items()) if name != "_name")
        parts.append(
            "<details><summary>Settings of model, schedule and optimisation</summary>"
            f"<pre>{escape(listed)}</pre></details>"
        )
    return "\n".join(parts)


def table(rows: Iterable[Iterable[str]], emphasised: Optional[str] = None) -> str:
    """Rows of text; a row that has the ``emphasised`` text in a cell stands out."""
    lines = []
    for row in rows:
        cells = list(row)
        mark = ' class="emphasised"' if emphasised in cells else ""
        lines.append(f"<tr{mark}>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>")
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'
