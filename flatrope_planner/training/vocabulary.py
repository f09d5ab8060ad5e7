"""What is learnt from the samples before the network is: the words, and the scale of the actions."""

from pathlib import Path

import numpy as np

from flatrope_planner.errors import InputError
from flatrope_planner.training.samples import TrainingSample, list_shards, read_shard
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.prompt import prompt_texts
from flatrope_planner.vla.tokenizer import NanoTokenizer, train_tokenizer

# Shards that are read; the words of a narrator repeat.
MAX_SHARDS = 400


def learn_vocabulary(samples: Path) -> tuple[NanoConfig, NanoTokenizer]:
    """A tokenizer of the narrator's words, and a configuration that knows the actions' scale.

    Raises:
        InputError: when there are no samples.
    """
    shards = list_shards(samples)
    if not shards:
        msg = f"{samples}: no training samples; make some with `flatrope train target --stage data`"
        raise InputError(msg)
    every = max(len(shards) // MAX_SHARDS, 1)
    read = [sample for path in shards[::every] for sample in read_shard(path)]
    texts = [sample.rationale for sample in read]
    tokenizer = NanoTokenizer(train_tokenizer(texts + prompt_texts() * len(texts)))
    mean, std = _action_scale(read)
    return NanoConfig(tokenizer.size, action_mean=mean, action_std=std), tokenizer


def _action_scale(samples: list[TrainingSample]) -> tuple[tuple[float, float], tuple[float, float]]:
    actions = np.concatenate([sample.action for sample in samples])
    mean, std = actions.mean(0), actions.std(0)
    return (float(mean[0]), float(mean[1])), (float(std[0]), float(std[1]))
