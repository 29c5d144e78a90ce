import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
PACKAGE = "vaswani_plugin"
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / PACKAGE / "__init__.py").read_text("utf-8"), re.MULTILINE)
assert VERSION is not None

setup(
    name="vaswani-plugin",
    version=VERSION.group(1),
    description='The Transformer of "Attention Is All You Need" for fairseq, faithful to the paper',
    long_description=(ROOT / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    license="MIT",
    license_files=["LICENSE"],
    python_requires=">=3.10",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={PACKAGE: ["py.typed", "configs/*.yaml"]},
    # fairseq is needed too, but its newest release on PyPI cannot be installed on today's Python, so that pip would
    # stop there: scripts/build_fairseq.py brings one that can, and importing the plugin without any says so.
    install_requires=["torch>=2.6", "numpy", "omegaconf>=2.0.6", "sentencepiece>=0.2", "sacrebleu>=2.3", "sacremoses"],
    extras_require={"figures": ["matplotlib"], "export": ["ctranslate2>=4", "safetensors"]},
    entry_points={"console_scripts": ["vaswani = vaswani_plugin.cli:main"]},
)
