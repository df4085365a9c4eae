"""A model as one ExecuTorch program: methods ``encode`` and ``decode_step``, of a language model the second alone, and
constants that say what it is.

Products and what else XNNPACK knows are XNNPACK's; the rest runs on ExecuTorch's portable kernels.
"""

from __future__ import annotations

import copy
import json
import math
import warnings
from collections.abc import Callable
from typing import TypeVar

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
from lite_nmt.export.graphs import DecodeStep, Encode, LanguageStep, beamed
from lite_nmt.models.language import LanguageModel
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.adaptive import Bands
from lite_nmt.modules.embedding import Embedding
from lite_nmt.modules.mixer import State

Model = TypeVar("Model", bound=nn.Module)
PAST = 7  # steps, of the example that is traced
WIDTH = 8  # the most hypotheses; memory is planned for the most


def export_executorch(model: TranslationModel, config: Config, int8: bool) -> bytes:
    """A .pte file of a translator. Its methods take contiguous tensors, int64 or float32, in this order::

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
    about = describe(model, config)
    return lower(model, lambda converted: _trace(model, converted, about), about, int8)


def export_language_executorch(model: LanguageModel, config: Config, int8: bool) -> bytes:
    """A .pte file of a language model, for one text, otherwise as :func:`export_executorch` says of translators::

        decode_step(token 1, position, state ...) -> logits 1 V, state ...

    Raises:
        LiteNmtError: ExecuTorch is not installed.
    """
    about = describe_language_model(model, config)
    state, grows = _grown(model.initial_state(1), int(about.get("max_past", 0)))
    example = torch.tensor([EOS]), torch.tensor(1), state

    def trace(converted: LanguageModel) -> dict[str, ExportedProgram]:
        return {STEP: export(LanguageStep(converted), example, dynamic_shapes=(None, None, grows))}

    return lower(model, trace, about, int8)


def lower(
    model: Model, trace: Callable[[Model], dict[str, ExportedProgram]], about: dict[str, int | str], int8: bool
) -> bytes:
    """The file of a model's methods and constants.

    Args:
        trace: the methods of the model, or of its like in int8.

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
        programs = trace(quantized(model) if int8 else model)
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


def describe_language_model(model: LanguageModel, config: Config) -> dict[str, int | str]:
    """The program's constant methods, as :func:`describe` says; a state's shape stands after the 1. ``max_past``, the
    words before the last one, is there where a state grows: those of a block, as memory is planned for the most."""
    state = {name: list(x.shape[1:]) for name, x in model.initial_state(1).items()}
    about: dict[str, int | str] = {
        "schema": SCHEMA,
        "target_types": config.vocabulary.target,
        "eos": EOS,
        "state": json.dumps(state),
    }
    if any(0 in shape for shape in state.values()):
        about["max_past"] = max(config.train.block - 1, PAST)
    return about


def _trace(
    model: TranslationModel, converted: TranslationModel, about: dict[str, int | str]
) -> dict[str, ExportedProgram]:
    """Both methods of ``converted``, whose states are those of ``model``.

    ExecuTorch reads an example's strides into the program and trusts later inputs to have the same, so all are
    contiguous. One tensor given twice would be one input: each is its own.
    """
    width, length = Dim("width", min=1, max=WIDTH), Dim("source", min=1, max=int(about["max_source"]))
    source, wide = torch.full((1, 5), EOS), (1, 3)
    memory = Encode(model)(source)
    state, grows = _grown(beamed(model.initial_state(3), *wide), int(about["max_past"]))
    grows = {name: {1: width, **axes} for name, axes in grows.items()}
    example = (source, torch.full(wide, BOS), torch.zeros(wide, dtype=torch.int64), torch.tensor(1), memory, state)
    dims = ({1: length}, {1: width}, {1: width}, None, {name: {2: length} for name in memory}, grows)
    return {
        ENCODE: export(Encode(converted), (source,), dynamic_shapes=({1: length},)),
        STEP: export(DecodeStep(converted), example, dynamic_shapes=dims),
    }


def _grown(first: State, most: int) -> tuple[State, dict[str, dict[int, Dim]]]:
    """A state some steps on, zeros, and its axes that grow, to ``most`` steps."""
    state, grows = {}, {}
    for name, x in first.items():
        state[name] = torch.zeros([size or PAST for size in x.shape])
        # A window stops a layer's own from growing, so that no two layers need agree.
        axes = [i for i, size in enumerate(x.shape) if not size]
        grows[name] = {i: Dim(f"past_{name.rpartition('.')[0].replace('.', '_')}", min=0, max=most) for i in axes}
    return state, grows


def quantized(model: Model) -> Model:
    """A copy whose products and embeddings are int8, on the grid of :mod:`lite_nmt.compress.int8`."""
    from torchao.quantization import IntxUnpackedToInt8Tensor

    copied = copy.deepcopy(model)
    made: dict[nn.Module, nn.Module] = {}  # what serves both ends still does
    for name, module in list(copied.named_modules(remove_duplicate=False)):
        if isinstance(module, Embedding):
            copied.set_submodule(name, made.setdefault(module, Table(module)))
        elif isinstance(module, Bands):
            copied.set_submodule(name, made.setdefault(module, Int8Bands(module)))
    for module in copied.modules():
        if isinstance(module, nn.Linear) and module.in_features > 1:  # ExecuTorch 1.4 cannot quantise one number
            codes, scales = _rows(module.weight)
            zeros = torch.zeros(scales.shape, dtype=torch.int8)
            weight = IntxUnpackedToInt8Tensor(
                codes, scales, zeros, torch.int8, (1, codes.shape[1]), torch.float32, "int8_asym_per_token"
            )
            module.weight = nn.Parameter(weight, requires_grad=False)
    return copied


class Int8Rows(nn.Module):
    """Rows of a matrix in int8, times ``scale``."""

    def __init__(self, weight: Tensor, scale: float) -> None:
        super().__init__()
        codes, scales = _rows(weight)
        self.codes, self.scales = nn.Buffer(codes), nn.Buffer(scales * scale)

    def forward(self, index: Tensor) -> Tensor:
        return F.embedding(index, self.codes).float() * F.embedding(index, self.scales)


class Table(Embedding):
    """An embedding whose rows are int8."""

    def __init__(self, embedding: Embedding) -> None:
        nn.Module.__init__(self)
        self.width = embedding.width
        self.rows = Int8Rows(embedding.weight, math.sqrt(embedding.weight.shape[1]))

    def lookup(self, tokens: Tensor) -> Tensor:
        return self.rows(tokens)


class Int8Bands(Bands):
    """Bands whose tables' rows are int8 where they are looked up, and whose maps and scores are linear layers."""

    def __init__(self, bands: Bands) -> None:
        nn.Module.__init__(self)
        self.spans, self.widths = bands.spans, bands.widths
        self.rows = nn.ModuleList(Int8Rows(table, 1.0) for table in bands.tables)
        maps = list(bands.maps)
        self.joined = linear(torch.cat(maps, 1))
        self.scores = nn.ModuleList(
            nn.Sequential(linear(m.t()), linear(table)) for m, table in zip(maps, bands.tables, strict=True)
        )

    def look_up(self, index: Tensor, band: int) -> Tensor:
        return self.rows[band](index)

    def embed(self, rows: Tensor) -> Tensor:
        return self.joined(rows) * math.sqrt(self.joined.out_features)

    def score(self, x: Tensor, band: int) -> Tensor:
        return self.scores[band](x)


def linear(weight: Tensor) -> nn.Linear:
    """A layer of these weights, N K, and no bias."""
    made = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    made.weight = nn.Parameter(weight.detach().contiguous())
    return made


def _rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Codes, N K, and scales, N 1."""
    codes, scales = quantize_rows(weight.detach().numpy())
    return torch.from_numpy(codes), torch.from_numpy(scales).unsqueeze(1)
