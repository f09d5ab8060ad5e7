"""Published checkpoints of targets: their folders, configurations and weights, read with nothing taken for granted."""
