"""fairseq checkpoints as files: reading strangers' ones safely, and averaging."""
