"""One web page about a training run, at any time of it. Reads what the run has written, and nothing else."""
