"""The fairseq learning-rate scheduler `vaswani_inverse_sqrt`."""
