"""vaswani audit."""

import json
from argparse import ArgumentParser, Namespace

NAME = "audit"
SUMMARY = "compare a training with the paper's, detail by detail"
DETAILS = (
    "Of a checkpoint, of a run's folder, or of fairseq-train's arguments, which stand after --. Beside each detail "
    "stands the value of the paper's model that the run is nearest to, with its section. Stock fairseq's models and "
    "losses are looked at in the same way."
)
EXAMPLE = "vaswani audit --strict -- binary --arch vaswani_base --task vaswani_translation --max-tokens 4096"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "subject",
        nargs="+",
        metavar="SUBJECT",
        help="a checkpoint, a folder with one, or -- and fairseq-train's arguments",
    )
    parser.add_argument("--strict", action="store_true", help="exit with status 1 if anything differs")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: Namespace) -> None:
    from vaswani_plugin.audit.comparison import audit_subject
    from vaswani_plugin.errors import UserError

    audit = audit_subject(options.subject)
    print(json.dumps(audit.as_json(), indent=2) if options.json else audit.as_table(), flush=True)
    if options.strict and audit.differences:
        names = ", ".join(detail.name for detail in audit.differences)
        raise UserError(f"{audit.subject}: not the paper's training, but another in {names}")
