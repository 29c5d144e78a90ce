"""A training beside the paper's, detail by detail."""
