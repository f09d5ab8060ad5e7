"""placeholder"""
WEIGHTS_FILE = "model.safetensors"
def observation_spec(config):
    from flatrope_planner.planning.observation import ObservationSpec
    return ObservationSpec(config.cameras, config.frames_per_camera, config.frame_period_s)
