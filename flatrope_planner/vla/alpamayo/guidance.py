"""The same request without its route: what guidance compares with (Alpamayo 1.5)."""

from dataclasses import replace

import numpy as np

from flatrope_planner.errors import InputError
from flatrope_planner.vla.prompt import PromptTokens
from flatrope_planner.vla.request import VlaPrompt


def without_route(prompt: VlaPrompt, route_start: int, route_end: int) -> VlaPrompt:
    """The prompt without all that stands from `<|route_start|>` to `<|route_end|>`.

    Raises:
        InputError: when there is no route in it.
    """
    ids, positions = prompt.tokens.ids, prompt.tokens.positions
    starts, ends = np.flatnonzero(ids == route_start), np.flatnonzero(ids == route_end)
    if not len(starts) or not len(ends):
        msg = "guidance: the prompt has no route, expected an observation with a command"
        raise InputError(msg)
    first, behind = int(starts[0]), int(ends[0]) + 1
    # A route and all behind it is text: it counts on by one.
    tokens = PromptTokens(
        np.concatenate([ids[:first], ids[behind:]]),
        np.concatenate([positions[:, :first], positions[:, behind:] - (behind - first)], axis=1),
        prompt.tokens.history,
    )
    return replace(prompt, tokens=tokens)
