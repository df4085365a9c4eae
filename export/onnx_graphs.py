"""The model's graphs in ONNX: encoder, decoder step, and whole searches, in which a step is the body of a Loop."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass, NameFixPass, RemoveUnusedNodesPass
from torch import Tensor, nn
from torch.export import Dim

from lite_nmt import __version__
from lite_nmt.config import DecodeConfig
from lite_nmt.data.vocabulary import BOS, EOS
from lite_nmt.errors import LiteNmtError
from lite_nmt.export import fuse, graphs
from lite_nmt.export.bundle import WEIGHTS
from lite_nmt.export.nodes import constant
from lite_nmt.export.runtime import ADVANCE, BEAM, BEGIN, ENCODER, GREEDY, STEP
from lite_nmt.export.shortlist import Shortlist
from lite_nmt.models.translation import TranslationModel

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
    for name, x in second.items():
        if not x.numel():
            raise LiteNmtError(
                f"the decoder's {name} is empty: a window or kernel of 1 remembers nothing, which graphs cannot carry; "
                "give that layer 2 or more."
            )
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

    def started(begin: ir.Model, step: ir.Model, **defaults: float) -> Start:
        return _start(encoder.clone(), [begin.clone(), *([choose.clone()] if shortlist else [])], step, defaults)

    limited = {"max_length": decode.max_length, "min_length": decode.min_length}
    scored = {"length_penalty": decode.length_penalty}
    if plain:
        found = _search(started(begin, greedy_step, **limited, **scored), greedy_step, end)
    else:
        found = _search(started(beam_begin, beam_step, **limited, **scored, beam=1), beam_step.clone())
        found.graph.inputs.remove(found.graph.initializers["beam"])  # it stays one
    return {
        ENCODER: encoder,
        STEP: step,
        GREEDY: found,
        BEGIN: _begin(started(beam_begin, beam_step, **limited, beam=decode.beam), beam_step),
        ADVANCE: _advance(beam_step.clone()),
        BEAM: _search(started(beam_begin, beam_step, **limited, **scored, beam=decode.beam), beam_step),
    }


@dataclass(frozen=True)
class Start:
    """A search before its first step.

    Attributes:
        model: its inputs but the source have defaults, so that a caller who is content with them gives the source
            alone; it has no outputs yet.
        known: every value that a step reads, by the name of the step's input.
        first: of those the ones that steps change, in the step's order.
    """

    model: ir.Model
    known: dict[str, ir.Value]
    first: list[ir.Value]


def _start(encoder: ir.Model, before: Sequence[ir.Model], step: ir.Model, defaults: Mapping[str, float]) -> Start:
    """Encode, begin, choose the shortlist where there is one."""
    graph = encoder.graph
    known = {str(value.name): value for value in (*graph.inputs, *graph.outputs)}
    graph.outputs.clear()
    for name, default in defaults.items():
        kind = np.float32 if name == "length_penalty" else np.int64
        known[name] = constant(graph, name, np.array(default, kind))
        graph.inputs.append(known[name])
    if "beam" in known:
        zero, one = (constant(graph, f"begin.{i}", np.array(i, np.int64)) for i in (0, 1))
        known["slots"] = _node(graph, "Range", [zero, known["beam"], one])[0]
    begin, *choose = before
    known["limits"], known["places"], *first = _inline(graph, begin.graph, known, "begin")
    for part in choose:
        names = [str(value.name) for value in part.graph.outputs]
        known |= zip(names, _inline(graph, part.graph, known, "chosen"), strict=True)
    encoder.opset_imports.update(step.opset_imports)
    known |= zip((str(value.name) for value in step.graph.inputs[1:]), first, strict=False)
    return Start(encoder, known, first)


def _begin(start: Start, step: ir.Model) -> ir.Model:
    """A search up to its first step, for callers who take the steps themselves.

    Its outputs are the step's inputs, by name, but for those that the caller has. Its inputs have no defaults: from
    Java ONNX Runtime takes no other value for an input that has one.
    """
    graph = start.model.graph
    for value in graph.inputs:
        if graph.initializers.pop(str(value.name), None):
            value.const_value = None
    for name in [str(value.name) for value in step.graph.inputs[1:]]:
        known = start.known.get(name)
        if known is not None and known not in graph.inputs:
            output = _node(graph, "Identity", [known])[0]
            output.type, output.shape = known.type, known.shape
            known.name, output.name = f"before.{name}", name
            graph.outputs.append(output)
    NameFixPass()(start.model)
    return start.model


def _advance(step: ir.Model) -> ir.Model:
    """One step of a search: whether it goes on, and ``next.NAME`` of each input that it changes."""
    graph = step.graph
    going, *values = graph.outputs
    going.name = "going_on"
    for before, after in zip(graph.inputs[1 : 1 + len(values)], values, strict=True):
        after.name = f"next.{before.name}"
    NameFixPass()(step)
    return step


def _search(start: Start, step: ir.Model, end: ir.Model | None = None) -> ir.Model:
    """One graph from source to target: the start, then the step until it says that nothing goes on."""
    encoder, known, first = start.model, start.known, start.first
    graph, limits = encoder.graph, known["limits"]
    # Position and what changes are the body's own; all else it sees in the graph around it.
    body = step.graph
    position, *inputs = list(body.inputs)
    carried = inputs[: len(first)]
    ir.convenience.replace_all_uses_with(inputs[len(first) :], [known[str(v.name)] for v in inputs[len(first) :]])
    going = ir.Value(name="going_on", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    body.inputs.clear()
    body.inputs.extend([position, going, *carried])
    for value in (*carried, *body.outputs):
        value.shape = None  # what is said grows, and so does what is remembered
    for name, value in list(body.initializers.items()):
        if name in graph.initializers and name.startswith("model."):
            value.replace_all_uses_with(graph.initializers[name])
            del body.initializers[name]

    fuse.hoist(body, graph)
    one = constant(graph, "limits.one", np.array(1, np.int64))
    most = _node(graph, "Add", [_node(graph, "ReduceMax", [limits], keepdims=0)[0], one])[0]
    yes = constant(graph, "going", np.array(True))
    *found, last = _node(graph, "Loop", [most, yes, *first], outputs=len(body.outputs) - 1, body=body)
    if end is None:
        _, _, _, _, target, logprob, score = [*found, last][:7]
    else:
        known |= {"tokens": found[-1], "logprobs": last}
        target, score, logprob = _inline(graph, end.graph, known, "end")
    for name, value, kind in (("target", target, "INT64"), ("score", score, "FLOAT"), ("logprob", logprob, "FLOAT")):
        output = _node(graph, "Identity", [value])[0]
        output.name, output.type = name, ir.TensorType(ir.DataType[kind])
        output.shape = ir.Shape(["batch", "beam", "length"][: 3 if name == "target" else 2])
        graph.outputs.append(output)
    NameFixPass()(encoder)
    return encoder


def _node(
    graph: ir.Graph, kind: str, inputs: Sequence[ir.Value], outputs: int = 1, **attributes: Any
) -> Sequence[ir.Value]:
    node = ir.node(kind, inputs, attributes, num_outputs=outputs)
    graph.append(node)
    return node.outputs


def _inline(graph: ir.Graph, part: ir.Graph, known: Mapping[str, ir.Value], prefix: str) -> list[ir.Value]:
    """Put another graph's nodes at the end of this one; inputs are found by name, and so are weights.

    Returns:
        What were its outputs.
    """
    ir.convenience.replace_all_uses_with(part.inputs, [known[str(v.name)] for v in part.inputs])
    outputs = list(part.outputs)
    part.outputs.clear()
    for name, value in list(part.initializers.items()):
        del part.initializers[name]
        if name in graph.initializers and name.startswith("model."):
            value.replace_all_uses_with(graph.initializers[name])
            continue
        value.name = f"{prefix}.{name}"
        graph.register_initializer(value)
    nodes = list(part)
    part.remove(nodes)
    graph.extend(nodes)
    return outputs


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
