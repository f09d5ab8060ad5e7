"""Layouts of draft checkpoints: what `config.json` and the weights beside it mean."""
