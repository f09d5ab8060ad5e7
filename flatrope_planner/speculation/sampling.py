"""How a text is drawn by chance, where it is not the greedy one. How that is done: `sampler`."""

from dataclasses import dataclass

from flatrope_planner.errors import InputError


@dataclass(frozen=True)
class Sampling:
    """How a text is drawn."""

    seed: int
    temperature: float = 0.6
    # Only the likeliest tokens, together as likely as this.
    top_p: float = 0.98
    # Only so many of the likeliest tokens; None: any number.
    top_k: int | None = None

    def __post_init__(self) -> None:
        wanted = {
            "temperature": (self.temperature > 0.0, "more than 0"),
            "top_p": (0.0 < self.top_p <= 1.0, "more than 0, at most 1"),
            "top_k": (self.top_k is None or self.top_k > 0, "more than 0"),
        }
        for name, (fits, expected) in wanted.items():
            if not fits:
                msg = f"sampling: {name} is {getattr(self, name)}, expected {expected}"
                raise InputError(msg)
