"""Targets: vision-language-action models, their prompt, their tokens and their action head."""
