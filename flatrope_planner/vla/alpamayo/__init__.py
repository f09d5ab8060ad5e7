"""Alpamayo-R1 and Alpamayo 1.5: their published checkpoints, read into models of this package."""
