"""Scores for translations. Needs neither torch nor fairseq."""
