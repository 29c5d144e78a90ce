"""Pictures of what a model does. Drawing files needs matplotlib; web pages need nothing."""
