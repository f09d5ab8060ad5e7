"""`flatrope doctor`: one file a check. Looks and says; what it tries out runs in processes of its own."""
