"""The text model's weights in eight bits, by torchao: half the memory of bfloat16, and not quite the same texts.

Each row of a matrix is rounded to 255 steps of its own; what is computed stays in the target's precision. Embeddings,
head, vision tower and action expert stay as they are: the first two are what drafts borrow, the others are small or
decide how one drives.
"""

import torch
from torch import nn

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.vla.alpamayo.model import AlpamayoModel
from flatrope_planner.vla.checkpoint.weights import check_memory


def quantise(model: AlpamayoModel, checkpoint: str, device: torch.device) -> None:
    """Round the weights of the text layers, and bring the model to a device.

    Raises:
        SetupError: when torchao is missing, or the device has too little memory.
    """
    try:
        from torchao.quantization import Int8WeightOnlyConfig, quantize_
    except ImportError as err:
        msg = f"precision int8 needs torchao, which is not there ({reason(err)}); pip install torchao"
        raise SetupError(msg) from err
    layers = model.vlm.model.language_model.layers
    if device.type != "cpu":
        rounded = sum(layer.weight.numel() * (layer.weight.itemsize - 1) for layer in linear_layers(layers))
        whole = sum(weight.numel() * weight.itemsize for weight in model.state_dict().values())
        check_memory(checkpoint, whole - rounded, device)
    quantize_(layers, Int8WeightOnlyConfig())
    model.to(device)


def linear_layers(module: nn.Module) -> list[nn.Linear]:
    """What is rounded of a module."""
    return [part for part in module.modules() if isinstance(part, nn.Linear)]
