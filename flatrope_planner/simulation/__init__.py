"""The embedded world: scenes, cameras, reference driver and narrator."""
