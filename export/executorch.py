"""The model as one ExecuTorch program: methods ``encode`` and ``decode_step``, and constants that say what it is.

Products and what else XNNPACK knows are XNNPACK's; the rest runs on ExecuTorch's portable kernels.
"""

from __future__ import annotations

import copy
import json
import math
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export

from lite_nmt.compress.int8 import quantize_rows
from lite_nmt.config import Config
from lite_nmt.data.vocabulary import BOS, EOS, PAD
from lite_nmt.decode.hypothesis import length_limit
from lite_nmt.errors import LiteNmtError
from lite_nmt.export.executorch_runtime import ENCODE, MISSING, SCHEMA, STEP
from lite_nmt.export.graphs import DecodeStep, Encode
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.embedding import Embedding

WIDTH = 8  # the most hypotheses; memory is planned for the most


def export_executorch(model: TranslationModel, config: Config, int8: bool) -> bytes:
    """A .pte file. Its methods take contiguous tensors, int64 or float32, in this order::

        encode(source 1 S) -> memory ...
        decode_step(source 1 S, token 1 W, parent 1 W, position, memory ..., state ...) -> logits 1 W V, state ...

    as :mod:`lite_nmt.export.graphs` says, for one sentence. Before the first step a state is zeros, its growing axis
    empty.

    Args:
        model: in eval mode, on the CPU.
        int8: give products int8 weights, a scale for each output channel, and inputs that are quantised as they come;
            embeddings too. Plain convolutions, taps, biases and norms stay float32.

    Raises:
        LiteNmtError: ExecuTorch is not installed.
    """
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the exporters, about themselves
        try:
            from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
            from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
        except ImportError as error:
            raise LiteNmtError(MISSING) from error
        about = describe(model, config)
        programs = _trace(model, quantized(model) if int8 else model, about)
        lowered = to_edge_transform_and_lower(
            programs,
            partitioner={name: [XnnpackPartitioner()] for name in programs},
            # ExecuTorch 1.4's own check measures the first part of a split where it means to count the parts, and so
            # fixes W at the example's.
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
            constant_methods={**about, "precision": "int8" if int8 else "fp32"},
        )
        return bytes(lowered.to_executorch().buffer)


def describe(model: TranslationModel, config: Config) -> dict[str, int | str]:
    """The program's constant methods.

    ``max_...`` are the longest axes it takes: hypotheses W, source tokens S with the end marker, and target tokens
    before the last one. ``memory`` and ``state`` are JSON, name to shape in the order of the arguments: a memory's
    after the 1, 0 for S, a state's after 1 W, 0 for an axis that grows.
    """
    vocabulary = config.vocabulary
    longest = max(vocabulary.max_length, 2)
    memory = model.memory(torch.zeros(1, 0, config.model.width))
    state = model.initial_state(1)
    return {
        "schema": SCHEMA,
        "source_types": vocabulary.source,
        "target_types": vocabulary.target,
        "pad": PAD,
        "bos": BOS,
        "eos": EOS,
        "max_width": WIDTH,
        "max_source": longest,
        "max_past": length_limit(longest - 1, config.decode),
        "memory": json.dumps({name: list(x.shape[1:]) for name, x in memory.items()}),
        "state": json.dumps({name: list(x.shape[1:]) for name, x in state.items()}),
    }


def _trace(
    model: TranslationModel, converted: TranslationModel, about: dict[str, int | str]
) -> dict[str, ExportedProgram]:
    """Both methods of ``converted``, whose states are those of ``model``.

    ExecuTorch reads an example's strides into the program and trusts later inputs to have the same, so all are
    contiguous. One tensor given twice would be one input: each is its own.
    """
    width, length = Dim("width", min=1, max=WIDTH), Dim("source", min=1, max=int(about["max_source"]))
    past = int(about["max_past"])
    source, wide = torch.full((1, 5), EOS), (1, 3)
    memory = Encode(model)(source)
    state, grows = {}, {}
    for name, first in model.initial_state(1).items():
        sizes = first.shape[1:]
        state[name] = torch.zeros(*wide, *(size or 7 for size in sizes))
        # A window stops a layer's own from growing, so that no two layers need agree.
        own = Dim(f"past_{name.rpartition('.')[0].replace('.', '_')}", min=0, max=past)
        grows[name] = {1: width, **{i: own for i, size in enumerate(sizes, 2) if not size}}
    example = (source, torch.full(wide, BOS), torch.zeros(wide, dtype=torch.int64), torch.tensor(1), memory, state)
    dims = ({1: length}, {1: width}, {1: width}, None, {name: {2: length} for name in memory}, grows)
    return {
        ENCODE: export(Encode(converted), (source,), dynamic_shapes=({1: length},)),
        STEP: export(DecodeStep(converted), example, dynamic_shapes=dims),
    }


def quantized(model: TranslationModel) -> TranslationModel:
    """A copy whose products and embeddings are int8, on the grid of :mod:`lite_nmt.compress.int8`."""
    from torchao.quantization import IntxUnpackedToInt8Tensor

    copied = copy.deepcopy(model)
    copied.target = Table(model.target)
    copied.source = copied.target if model.source is model.target else Table(model.source)
    for module in copied.modules():
        if isinstance(module, nn.Linear):
            codes, scales = _rows(module.weight)
            zeros = torch.zeros(scales.shape, dtype=torch.int8)
            weight = IntxUnpackedToInt8Tensor(
                codes, scales, zeros, torch.int8, (1, codes.shape[1]), torch.float32, "int8_asym_per_token"
            )
            module.weight = nn.Parameter(weight, requires_grad=False)
    return copied


class Table(Embedding):
    """An embedding whose rows are int8."""

    def __init__(self, embedding: Embedding) -> None:
        nn.Module.__init__(self)
        self.width = embedding.width
        codes, scales = _rows(embedding.weight)
        self.codes, self.scales = nn.Buffer(codes), nn.Buffer(scales * math.sqrt(codes.shape[1]))

    def lookup(self, tokens: Tensor) -> Tensor:
        return F.embedding(tokens, self.codes).float() * F.embedding(tokens, self.scales)


def _rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Codes, N K, and scales, N 1."""
    codes, scales = quantize_rows(weight.detach().numpy())
    return torch.from_numpy(codes), torch.from_numpy(scales).unsqueeze(1)
