"""glibc's thresholds: what a process keeps of the memory that it frees, counted in page faults."""

import json
import subprocess
import sys

import pytest

# A process of its own for each setting, made before any has memory to keep. Then ten times 64 MB are written to:
# pages of 4 KB that are fetched again unless they were kept.
PROGRAM = """
import json, logging, os, resource, sys, torch
from vaswani_plugin import allocator
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s", force=True)
for settings in json.loads(sys.argv[1]):
    sys.stdout.flush()
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        continue
    os.environ.update(settings)
    allocator.keep_freed_memory()
    allocator.keep_freed_memory()
    for _ in range(20):
        torch.ones(2**24)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(2**24)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, "faults")
    sys.stdout.flush()
    os._exit(0)
"""
PAGES = 10 * 2**26 // 4096


@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_freed_memory_is_kept_unless_the_user_says_otherwise() -> None:
    settings = [{"VASWANI_KEEP_MEMORY": "0"}, {"MALLOC_ARENA_MAX": "4"}, {}]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings)],
        env={"PATH": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    *others, said, kept = result.stdout.splitlines()
    assert said.startswith("freed memory is kept")
    assert int(kept.split()[0]) < PAGES // 20
    assert len(others) == 2
    assert all(int(line.split()[0]) > PAGES // 10 for line in others)
