"""Mult-Adds of any ``nn.Module``, counted over its TorchScript trace with fvcore and our own operator handles."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lite_nmt.config import Config
from lite_nmt.errors import LiteNmtError
from lite_nmt.models.language import LanguageModel
from lite_nmt.models.translation import TranslationModel
from lite_nmt.profiling.activations import observe
from lite_nmt.profiling.cost import Cost, Lengths, Part
from lite_nmt.profiling.kinds import part_of
from lite_nmt.profiling.operators import COUNTED, MetaConvolution, is_free

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses torch.jit.script, which warns
    from fvcore.nn.jit_analysis import JitModelAnalysis


def profile(
    model: nn.Module,
    inputs: tuple[Any, ...] | Tensor = (),
    kwargs: Mapping[str, Tensor] | None = None,
    strict: bool = False,
) -> Cost:
    """Count the Mult-Adds, parameters and activations of one pass through any module.

    The model is traced with TorchScript, so what is counted is the path that these inputs take. On the meta device
    (``with torch.device("meta")``) nothing is computed and no memory is needed. The model is left as it was.

    Args:
        inputs, kwargs: what ``model(*inputs, **kwargs)`` takes; a tensor stands for itself alone.
        strict: whether to refuse a model of which not all could be counted.

    Returns:
        One part for each module that does something; ``uncounted`` names operators that no handle knows, and
        parameters that no operator used. Products with weights count, as do those of attention; norms, softmax,
        pooling, activations, biases, lookups and elementwise products do not (docs/counting.md).

    Raises:
        LiteNmtError: it is no module, it cannot be traced, or, with ``strict``, not all of it counted.
    """
    model = getattr(model, "_orig_mod", model)  # torch.compile's wrapper
    if not isinstance(model, nn.Module):
        raise LiteNmtError(f"{model!r} is no nn.Module; wrap a function in one to count it.")
    name = type(model).__name__
    if not isinstance(inputs, Tensor | tuple | list):
        raise LiteNmtError(f"the inputs of {name} are {inputs!r}; give a tensor or a tuple, and the others as kwargs.")
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    classes = {path: f"{type(m).__module__}.{type(m).__qualname__}" for path, m in model.named_modules()}
    parts = {path: part_of(path, classes) for path in classes}
    try:
        with warnings.catch_warnings(), _as_it_was(model), _in_tensors(model, len(given), tuple(kwargs or ())):
            warnings.simplefilter("ignore")  # that tracing is deprecated, and that it follows one path
            given += tuple((kwargs or {}).values())
            with MetaConvolution():
                products, uncounted = _trace(model, given)
            peaks, unused = observe(model, given, {path: part for path, (part, _) in parts.items()})
    except LiteNmtError:
        raise
    except Exception as error:  # whatever the model raises, and the tracer
        reason = str(error).strip().split("\n")[0]
        raise LiteNmtError(f"cannot trace {name}: {reason or type(error).__name__}.") from error
    found = {part: Part(*part, 0, 0, peaks.get(part[0], 0)) for part in parts.values()}
    held = _own_parameters(model)
    for path, part in parts.items():
        p = found[part]
        found[part] = Part(*part, p.mult_adds + products.get(path, 0), p.parameters + held[path], p.activations)
    uncounted += [f"parameter {path}, which no operator used" for path in unused]
    counted = tuple(p for p in found.values() if p.mult_adds or p.parameters)
    if strict and uncounted:
        raise LiteNmtError(f"could not count all of {name}: {'; '.join(uncounted)}.")
    return Cost(counted, tuple(uncounted), max(peaks.values()))


@contextmanager
def _as_it_was(model: nn.Module) -> Iterator[None]:
    """Evaluate the model, and leave nothing of that behind: modes, hooks (fvcore forgets its own when a model fails),
    compiled calls, and the fast path that hides a whole encoder layer in one operator."""
    modules = list(model.modules())
    before = [(m.training, dict(m._forward_pre_hooks), dict(m._forward_hooks)) for m in modules]
    compiled = {m: m._compiled_call_impl for m in modules if m._compiled_call_impl}
    fast = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(False)
        model.eval()
        for module in compiled:
            module._compiled_call_impl = None
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for module, call in compiled.items():
            module._compiled_call_impl = call
        for module, (training, pre, post) in zip(modules, before, strict=True):
            module.training = training
            for hooks, kept in ((module._forward_pre_hooks, pre), (module._forward_hooks, post)):
                hooks.clear()
                hooks.update(kept)


@contextmanager
def _in_tensors(model: nn.Module, positional: int, names: tuple[str, ...]) -> Iterator[None]:
    """For a tracer that passes inputs by position and takes tensors back: name the last inputs, unfold the result."""
    own, call = "forward" in vars(model), model.forward

    def forward(*inputs: Any) -> tuple[Tensor, ...]:
        return tuple(_tensors(call(*inputs[:positional], **dict(zip(names, inputs[positional:], strict=True)))))

    model.forward = forward
    try:
        yield
    finally:
        if own:
            model.forward = call
        else:
            del model.forward


def _tensors(result: Any) -> Iterator[Tensor]:
    """All tensors of a result, in whatever it holds them."""
    if isinstance(result, Tensor):
        yield result
    elif isinstance(result, Mapping):
        yield from _tensors(list(result.values()))
    elif isinstance(result, list | tuple):
        for item in result:
            yield from _tensors(item)
    elif hasattr(result, "__dict__"):
        yield from _tensors(list(vars(result).values()))


def _own_parameters(model: nn.Module) -> dict[str, int]:
    """Each module's own; one that several share is the first's."""
    seen: set[int] = set()
    found = {}
    for path, module in model.named_modules():
        new = [p for p in module.parameters(recurse=False) if id(p) not in seen]
        seen |= {id(p) for p in new}
        found[path] = sum(p.numel() for p in new)
    return found


def _trace(model: nn.Module, inputs: tuple[Any, ...]) -> tuple[dict[str, int], list[str]]:
    """Each module's own products, and what could not be counted."""
    analysis = JitModelAnalysis(model, inputs).set_op_handle(**COUNTED)
    analysis.unsupported_ops_warnings(False).uncalled_modules_warnings(False).tracer_warnings("none")
    inclusive = analysis.by_module()
    own = dict(inclusive)
    for path, count in inclusive.items():
        if path:
            own[path.rpartition(".")[0]] -= count
    unknown = {op: times for op, times in sorted(analysis.unsupported_ops().items()) if not is_free(op)}
    return {path: int(count) for path, count in own.items()}, [f"operator {op}, {n} times" for op, n in unknown.items()]


class TeacherForced(TranslationModel):
    """A translation model whose pass ends with the scores: what every counter counts."""

    def forward(self, source: Tensor, keep: Tensor, target: Tensor) -> Tensor:
        """Scores of every target token, N T V."""
        return self.project(super().forward(source, keep, target))


class Read(LanguageModel):
    """A language model whose pass ends with the scores, likewise."""

    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]  # without a cache
        """Scores after every token, B T V."""
        return self.project(super().forward(tokens)[0])


class _NoValues(TorchFunctionMode):
    """Initialisation draws nothing: on the meta device there is nowhere to put it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def unallocated(config: Config, of: Lengths) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """The model that a configuration describes, and inputs for it, on the meta device."""
    with torch.device("meta"), _NoValues():
        if config.task == "lm":
            return Read(config).eval(), (torch.zeros(of.batch * of.beam, of.target, dtype=torch.long),)
        model = TeacherForced(config).eval()
        source = torch.zeros(of.batch, of.source, dtype=torch.long)
        target = torch.zeros(of.batch * of.beam, of.target, dtype=torch.long)
        return model, (source, torch.ones(source.shape, dtype=torch.bool), target)
