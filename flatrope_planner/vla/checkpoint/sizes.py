"""Whether the sizes of a configuration go together, said in a line before transformers would stumble over them."""

from collections.abc import Iterable, Mapping

from flatrope_planner.vla.checkpoint.fields import MOST, MOST_THINGS

# Of things that are made one by one there are fewer.
THINGS = ("num_hidden_layers", "depth", "num_attention_heads", "num_key_value_heads", "num_heads", "head_dim")


def check_whole(owner: object, names: Iterable[str]) -> None:
    """Raise a ValueError where one of these fields is no size."""
    for name in names:
        most, value = MOST_THINGS if name in THINGS else MOST, getattr(owner, name)
        if type(value) is not int or not 1 <= value <= most:
            msg = f"{name} is {value!r}, expected a whole number from 1 to {most}"
            raise ValueError(msg)


def check_rules(rules: Mapping[str, bool]) -> None:
    """Raise a ValueError for the first rule that does not hold."""
    for rule, holds in rules.items():
        if not holds:
            msg = f"expected that {rule}"
            raise ValueError(msg)


def counts(value: object, number: int) -> bool:
    """Whether it is a list of so many whole numbers, none below zero."""
    return isinstance(value, list) and len(value) == number and all(type(each) is int and each >= 0 for each in value)
