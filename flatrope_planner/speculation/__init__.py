"""Decoding of rationales: what a target and a drafter must offer, and the one loop that joins them."""
