"""A trained model in use: loading, raw text to raw text, model folders, streams of lines."""
