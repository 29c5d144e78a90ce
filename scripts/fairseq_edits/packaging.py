# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of setup.py: true metadata, and a wheel that holds what can run."""

import json

from fairseq_edits.edit import Cut, Edit, Replace

VERSION = "0.12.2+vaswani.1"

# The newest of each with wheels for Python 3.10 to 3.13; what numpy 2 built runs with numpy 1.19 and newer.
BUILD_REQUIREMENTS = ["setuptools==80.9.0", "wheel==0.45.1", "cython==3.1.4", "numpy==2.2.6"]

EDITS = [
    Edit(
        "version",
        "the mended package must not pass for the published one",
        Replace("fairseq/version.txt", "0.12.2", VERSION),
    ),
    Edit(
        "requirements",
        "hydra-core<1.1 and omegaconf<2.1 have metadata that pip 24.1+ refuses, do not run on Python 3.11+, "
        "and torchaudio, cffi and cython are not imported by anything a text model needs",
        Cut(
            "setup.py",
            "        setup_requires=[\n",
            "        dependency_links=dependency_links,\n",
            """\
        license="MIT",
        python_requires=">=3.10",
        install_requires=[
            "bitarray",
            "hydra-core>=1.3.2,<1.4",
            "numpy",
            "omegaconf>=2.3,<2.4",
            "regex",
            "sacrebleu>=2.0",
            "torch>=2.6",
            "tqdm",
        ],
""",
        ),
        Replace("setup.py", "        dependency_links=dependency_links,\n", ""),
    ),
    Edit(
        "build-requirements",
        "unpinned build tools change under us; numpy is imported by the build and was missing here",
        Replace(
            "pyproject.toml",
            'requires = ["setuptools", "wheel", "cython"]',
            f"requires = {json.dumps(BUILD_REQUIREMENTS)}",
        ),
    ),
    Edit(
        "classifiers",
        "they claim Python 3.6 to 3.8",
        Replace(
            "setup.py",
            """\
            "Programming Language :: Python :: 3.6",
            "Programming Language :: Python :: 3.7",
            "Programming Language :: Python :: 3.8",
""",
            """\
            "Programming Language :: Python :: 3.10",
            "Programming Language :: Python :: 3.11",
            "Programming Language :: Python :: 3.12",
            "Programming Language :: Python :: 3.13",
""",
        ),
    ),
    Edit(
        "extensions",
        "the C++ sources of the torch extensions are not in the source package, so they can never be built from it",
        Cut(
            "setup.py", "try:\n    # torch is not available when generating docs\n", 'if "READTHEDOCS" in os.environ:\n'
        ),
    ),
    Edit(
        "examples",
        "hundreds of example files (19 MB of scripts, media and configs) would be installed as package data",
        Replace(
            "setup.py",
            """\
                get_files(fairseq_examples)
                + get_files(os.path.join("fairseq", "config"))
""",
            """\
                get_files(os.path.join("fairseq", "config"))
""",
        ),
        Replace(
            "setup.py",
            """\
                "examples",
                "examples.*",
""",
            """\
                "fairseq.examples",
                "fairseq.examples.*",
""",
        ),
        Replace(
            "setup.py",
            """\
        if "build_ext" not in sys.argv[1:] and not os.path.exists(fairseq_examples):
            os.symlink(os.path.join("..", "examples"), fairseq_examples)
""",
            "",
        ),
    ),
]
