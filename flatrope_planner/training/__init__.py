"""Training: samples on disk, the loop that fits the embedded target, its command."""
