"""From configuration to layers: the only place that knows which mixer a name stands for."""

from __future__ import annotations

from lite_nmt.config import ModelConfig, StackConfig
from lite_nmt.modules.adaptive_span import AdaptiveSpan
from lite_nmt.modules.attention import CrossAttention, SelfAttention
from lite_nmt.modules.average import AverageAttention
from lite_nmt.modules.convolution import Convolution, DynamicTaps, LightTaps, PlainConvolution, TalkTaps, Taps
from lite_nmt.modules.layer import DecoderLayer, EncoderLayer, FeedForward
from lite_nmt.modules.lsra import LSRA
from lite_nmt.modules.mixer import Mixer


def build_convolution(kind: str, stack: StackConfig, width: int, layer: int, causal: bool) -> Convolution:
    """One of the three banded convolutions."""
    taps, channels = stack.kernel(layer), stack.conv_width(layer, width)
    heads = stack.conv_heads or channels
    padding = taps - 1 if causal else taps // 2
    producer: Taps
    if kind == "talk":
        # K taps reach K-1 steps: all to the left in the decoder, shared by the two sides in the encoder.
        producer = TalkTaps(channels, heads, padding, taps - 1 - padding, stack.weight_dropout)
    elif kind == "dynamicconv":
        producer = DynamicTaps(
            channels, heads, taps, padding, stack.weight_norm, stack.weight_dropout, stack.renormalize
        )
    else:
        producer = LightTaps(heads, taps, padding, stack.weight_norm, stack.weight_dropout, stack.renormalize)
    return Convolution(width, producer, stack.glu, channels)


def build_attention(model: ModelConfig, stack: StackConfig, width: int, layer: int, causal: bool) -> SelfAttention:
    """Attention of a sentence to itself; heads that were pruned leave the others as wide as they were."""
    heads, head_width = stack.heads_of(layer), width // stack.heads
    if stack.mixer == "adaptive-span":
        learned = stack.span_of(layer) if stack.spans else None
        return AdaptiveSpan(
            width, heads, stack.span, stack.ramp, learned, model.attention_dropout, head_width, stack.persistent
        )
    return SelfAttention(
        width, heads, causal, stack.window(layer), model.attention_dropout, head_width, stack.persistent
    )


def build_mixer(model: ModelConfig, stack: StackConfig, layer: int, causal: bool) -> Mixer:
    """The mixer of one layer, counted from 0."""
    width, taps = model.width, stack.kernel(layer)
    match stack.mixer:
        case "attention" | "adaptive-span":
            return build_attention(model, stack, width, layer, causal)
        case "average":
            return AverageAttention(width, stack.ffn, causal)
        case "cnn":
            return PlainConvolution(width, taps, taps - 1 if causal else taps // 2, stack.glu)
        case "lsra":
            half = width // 2
            attention = build_attention(model, stack, half, layer, causal)
            return LSRA(attention, build_convolution(stack.conv, stack, half, layer, causal))
    return build_convolution(stack.mixer, stack, width, layer, causal)


def build_ffn(model: ModelConfig, stack: StackConfig, layer: int) -> FeedForward | None:
    """The feed-forward network of one layer, or None where there is none."""
    hidden = stack.ffn_width(layer)
    return FeedForward(model.width, hidden, model.activation, model.ffn_dropout) if hidden else None


def build_encoder_layer(model: ModelConfig, layer: int) -> EncoderLayer:
    """One encoder layer, counted from 0."""
    ffn, mixer = build_ffn(model, model.encoder, layer), build_mixer(model, model.encoder, layer, causal=False)
    return EncoderLayer(mixer, ffn, model.width, model.dropout, model.norm == "pre")


def build_language_layer(model: ModelConfig, layer: int) -> EncoderLayer:
    """One layer of a decoder without a source, counted from 0."""
    ffn, mixer = build_ffn(model, model.decoder, layer), build_mixer(model, model.decoder, layer, causal=True)
    return EncoderLayer(mixer, ffn, model.width, model.dropout, model.norm == "pre")


def build_decoder_layer(model: ModelConfig, layer: int) -> DecoderLayer:
    """One decoder layer, counted from 0."""
    ffn, mixer = build_ffn(model, model.decoder, layer), build_mixer(model, model.decoder, layer, causal=True)
    heads, head_width = model.cross_heads_of(layer), model.width // model.cross_heads
    cross = CrossAttention(model.width, heads, model.attention_dropout, head_width)
    return DecoderLayer(mixer, cross, ffn, model.width, model.dropout, model.norm == "pre")
