"""glibc's thresholds: what a process keeps of the memory that it frees, counted in page faults."""

import subprocess
import sys

import pytest

# Ten times 64 MB of memory, written to: pages of 4 KB that are fetched again unless they were kept.
PROGRAM = """
import logging, resource, torch
from vaswani_plugin import allocator
logging.basicConfig(level=logging.INFO)
allocator.keep_freed_memory()
allocator.keep_freed_memory()
for _ in range(20):
    torch.ones(2**24)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    torch.ones(2**24)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES = 10 * 2**26 // 4096


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
@pytest.mark.parametrize(
    ("settings", "kept"), [({}, True), ({"VASWANI_KEEP_MEMORY": "0"}, False), ({"MALLOC_ARENA_MAX": "4"}, False)]
)
def test_freed_memory_is_kept_unless_the_user_says_otherwise(settings: "dict[str, str]", kept: bool) -> None:
    environment = {"PATH": "", "OMP_NUM_THREADS": "1", **settings}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    faults = int(result.stdout)
    assert faults < PAGES // 20 if kept else faults > PAGES // 10
    assert result.stderr.count("freed memory is kept") == (1 if kept else 0)
