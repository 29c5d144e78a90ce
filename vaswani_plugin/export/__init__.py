"""A packaged model's weights in the formats of other programs."""
