"""The model's graphs in ONNX: encoder, decoder step, and the parts of searches, traced and written to files."""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir
import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass, RemoveUnusedNodesPass
from torch import Tensor, nn
from torch.export import Dim

from lite_nmt import __version__
from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import BOS, EOS
from lite_nmt.errors import LiteNmtError
from lite_nmt.export import fuse, graphs, searches
from lite_nmt.export.bundle import WEIGHTS
from lite_nmt.export.runtime import ADVANCE, BEAM, BEGIN, ENCODER, GREEDY, STEP
from lite_nmt.export.shortlist import Shortlist
from lite_nmt.models.translation import TranslationModel
from lite_nmt.modules.mixer import State

OPSET = 20
ALIGNED = 64  # bytes; where a weight begins in the file, so that it can be mapped
EXTERNAL = 256  # bytes; smaller constants stand in each graph

# Of the example that is traced. They differ, so that no two are taken for one.
_SIZES = {"batch": 2, "width": 3, "source": 5, "past": 7, "positions": 11, "own": 1013}


@dataclass(frozen=True)
class Axes:
    """A tensor by its sizes; those that differ from call to call are named."""

    sizes: tuple[int | Dim, ...] = ()
    dtype: torch.dtype = torch.float32

    def example(self) -> Tensor:
        """A tensor of this kind, contiguous."""
        return torch.ones([s if isinstance(s, int) else _size(s) for s in self.sizes], dtype=self.dtype)

    def free(self) -> dict[int, Dim]:
        """Named axes, as torch.export wants them."""
        return {i: s for i, s in enumerate(self.sizes) if not isinstance(s, int)}

    def shape(self) -> ir.Shape:
        """The same for ONNX."""
        return ir.Shape([s if isinstance(s, int) else s.__name__ for s in self.sizes])


def _size(axis: Dim) -> int:
    """Of the example: "own + 256" is 256 more than "own"."""
    name, _, more = axis.__name__.partition(" + ")
    return _SIZES[name] + int(more or 0)


Argument = Axes | dict[str, Axes]


def export_graphs(
    model: TranslationModel,
    decode: DecodeConfig,
    convert: Callable[[ir.Model], None] = lambda graph: None,
    shortlist: Shortlist | None = None,
) -> dict[str, ir.Model]:
    """Every graph of a model, by file name.

    Args:
        model: in eval mode, on the CPU.
        decode: defaults of the searches' inputs.
        convert: changes the weights of each part.
        shortlist: what the searches limit themselves to; the step computes all types.

    Raises:
        LiteNmtError: a decoder layer has no state.
    """
    tokens = torch.int64
    batch, length, past = Dim("batch"), Dim("source"), Dim("past")
    among = model.project.out_features - EOS if shortlist is None else shortlist.least()
    width = Dim("width", max=among // 2)  # so many continuations are compared
    source = Axes((batch, length), tokens)
    with torch.no_grad():
        one_source = source.example()[:1]
        known = model.memory(model.encode(one_source, one_source > 0))
        first = model.initial_state(1)
        _, second = model.step(torch.tensor([BOS]), 0, first, known, one_source > 0)
    check_state(second)
    greedy = {
        name: Axes((batch, *(a if a == b else past for a, b in zip(x.shape[1:], second[name].shape[1:], strict=True))))
        for name, x in first.items()
    }
    beam = {name: Axes((batch, width, *axes.sizes[1:])) for name, axes in greedy.items()}
    one = Axes((batch, 1), tokens)
    scalar, row, wide = Axes((), tokens), Axes((batch,), tokens), Axes((batch, width), tokens)
    text, numbers = Axes((batch, width, past), tokens), Axes((batch, width))
    memory = {name: Axes((batch, x.shape[1], length, x.shape[3])) for name, x in known.items()}
    own = Dim("own")
    always = 0 if shortlist is None else len(shortlist.frequent) - 1
    chosen = {
        "types": Axes((batch, own + always), tokens),
        "weight": Axes((batch, model.project.in_features, own)),
        "bias": Axes((batch, own)),
    }
    places = Axes((Dim("positions"), model.project.in_features))
    limits: dict[str, Argument] = {"source": source, "max_length": scalar, "min_length": scalar}
    fixed: dict[str, Argument] = {
        "limits": row,
        "places": places,
        "min_length": scalar,
        "source": source,
        "memory": memory,
    }
    fixed["chosen"] = chosen if shortlist else {}

    encoder = trace(graphs.Encode(model), {"source": source}, [f"memory.{name}" for name in memory])
    step = trace(
        graphs.DecodeStep(model),
        {"source": source, "token": wide, "parent": wide, "position": scalar, "memory": memory, "state": beam},
        ["logits", *(f"next.{name}" for name in beam)],
    )
    beam_step = trace(
        graphs.BeamStep(model, shortlist, decode.penalty, decode.no_repeat_ngram),
        {
            "position": scalar,
            "token": wide,
            "total": numbers,
            "history": text,
            "ended": row,
            "texts": text,
            "logprobs": numbers,
            "scores": numbers,
            "state": beam,
            "length_penalty": Axes(),
            **fixed,
        },
    )
    beam_begin = trace(graphs.BeamBegin(model), {**limits, "slots": Axes((width,), tokens)})
    parts = [encoder, step, beam_step]
    # Where more than the best token counts, greedy search is a beam search of one.
    plain = decode.penalty != "stepwise" and not decode.no_repeat_ngram
    if plain:
        greedy_step = trace(
            graphs.GreedyStep(model, shortlist),
            {
                "position": scalar,
                "token": one,
                "going": one,
                "state": greedy,
                **fixed,
                "limits": one,
            },
        )
        begin = trace(graphs.GreedyBegin(model), limits)
        end = trace(
            graphs.GreedyEnd(decode.penalty),
            {"tokens": Axes((past, batch, 1), tokens), "logprobs": Axes((past, batch, 1)), "length_penalty": Axes()},
        )
        parts.append(greedy_step)
    if shortlist:
        parts.append(
            choose := trace(graphs.Choose(model, shortlist), {"source": source}, [f"chosen.{name}" for name in chosen])
        )
    for part in parts:
        fuse.simplify(part)
        convert(part)
        RemoveUnusedNodesPass()(part)

    def started(begin: ir.Model, step: ir.Model, **defaults: float) -> searches.Start:
        before = [begin.clone(), *([choose.clone()] if shortlist else [])]
        return searches.prepare(encoder.clone(), before, step, defaults)

    limited = {"max_length": decode.max_length, "min_length": decode.min_length}
    scored = {"length_penalty": decode.length_penalty}
    if plain:
        found = searches.whole(started(begin, greedy_step, **limited, **scored), greedy_step, end)
    else:
        found = searches.whole(started(beam_begin, beam_step, **limited, **scored, beam=1), beam_step.clone())
        found.graph.inputs.remove(found.graph.initializers["beam"])  # it stays one
    return {
        ENCODER: encoder,
        STEP: step,
        GREEDY: found,
        BEGIN: searches.begin(started(beam_begin, beam_step, **limited, beam=decode.beam), beam_step),
        ADVANCE: searches.advance(beam_step.clone()),
        BEAM: searches.whole(started(beam_begin, beam_step, **limited, **scored, beam=decode.beam), beam_step),
    }


def check_state(second: State) -> None:
    """Refuse a model with a layer that has no state after the first step.

    Raises:
        LiteNmtError: there is one.
    """
    for name, x in second.items():
        if not x.numel():
            raise LiteNmtError(
                f"the decoder's {name} is empty: a window or kernel of 1 remembers nothing, which graphs cannot carry; "
                "give that layer 2 or more."
            )


def trace(module: nn.Module, arguments: Mapping[str, Argument], outputs: Sequence[str] = ()) -> ir.Model:
    """Export one module; inputs are named as its arguments, those in a dictionary as ``argument.key``."""
    example: dict[str, object] = {}
    dims: dict[str, object] = {}
    names: dict[str, Axes] = {}
    for name, argument in arguments.items():
        if isinstance(argument, Axes):
            example[name], dims[name] = argument.example(), argument.free()
            names[name] = argument
        else:
            example[name] = {key: axes.example() for key, axes in argument.items()}
            dims[name] = {key: axes.free() for key, axes in argument.items()}
            names |= {f"{name}.{key}": axes for key, axes in argument.items()}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it tells at each export that torchvision is not there
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of PyTorch's exporter, about itself
        program = torch.export.export(module.eval(), (), example, dynamic_shapes=dims)
        exported = torch.onnx.export(program, dynamo=True, verbose=False, opset_version=OPSET)
    assert exported is not None  # typed as optional for the older exporter
    model = exported.model
    for value, (name, axes) in zip(model.graph.inputs, names.items(), strict=True):
        value.name, value.shape = name, axes.shape()
    for value, name in zip(model.graph.outputs, outputs or [str(v.name) for v in model.graph.outputs], strict=True):
        value.name = name
    return model


def serialize(models: Mapping[str, ir.Model]) -> dict[str, bytes]:
    """The files of some graphs: each its own, and one of the weights that they share."""
    weights = bytearray()
    places: dict[bytes, int] = {}
    files = {}
    for name, model in models.items():
        ClearMetadataAndDocStringPass()(model)
        _shorten(model)
        for value in _large(model):
            assert value.const_value is not None
            content = value.const_value.tobytes()
            key = hashlib.sha256(content).digest()
            if key not in places:
                weights += bytes(-len(weights) % ALIGNED)
                places[key] = len(weights)
                weights += content
            tensor = value.const_value
            value.const_value = ir.ExternalTensor(
                WEIGHTS,
                places[key],
                len(content),
                tensor.dtype,
                shape=ir.Shape(tensor.shape.numpy()),
                name=str(value.name),
            )
        proto = ir.to_proto(model)
        proto.producer_name, proto.producer_version = "lite-nmt", __version__
        files[name] = proto.SerializeToString()  # type: ignore[no-untyped-call]  # protobuf's
    return {**files, WEIGHTS: bytes(weights)}


def _shorten(model: ir.Model) -> None:
    """Leave out what nobody reads: names of nodes, long names of values, and shapes that follow from others."""
    count = 0
    for graph in model.graphs():
        kept = {*graph.inputs, *graph.outputs}
        for value in graph.initializers.values():
            value.metadata_props.clear()
        for node in graph:
            node.name = None
            for value in node.outputs:
                if value not in kept:
                    value.name, value.type, value.shape, count = f"v{count:x}", None, None, count + 1
                value.metadata_props.clear()


def _large(model: ir.Model) -> list[ir.Value]:
    """Constants that are kept beside the graph."""
    return [
        value
        for graph in model.graphs()
        for value in graph.initializers.values()
        if value.const_value is not None and value.const_value.nbytes >= EXTERNAL
    ]
