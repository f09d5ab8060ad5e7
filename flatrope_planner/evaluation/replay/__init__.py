"""Replays recorded drives through the planning core and scores what it would have done against what was driven."""
