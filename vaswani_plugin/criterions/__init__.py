"""The fairseq criterion `vaswani_label_smoothing`."""
