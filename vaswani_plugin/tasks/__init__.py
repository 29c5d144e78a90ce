"""The fairseq task `vaswani_translation`."""
