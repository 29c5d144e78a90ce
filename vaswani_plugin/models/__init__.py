"""The fairseq model `vaswani_transformer` and its named architectures."""
