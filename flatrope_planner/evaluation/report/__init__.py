"""The report of a recorded drive: one HTML file that needs nothing else."""
