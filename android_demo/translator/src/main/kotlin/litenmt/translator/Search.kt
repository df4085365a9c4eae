package litenmt.translator

import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtException

/**
 * What a search found for one source.
 *
 * @property score log-probability after the length penalty, natural logarithm; NaN where it was [cancelled].
 * @property encodeMillis until the first step; NaN where that is not known.
 * @property millis in all.
 */
internal class Found(
    val tokens: List<Int>,
    val score: Float,
    val encodeMillis: Double,
    val millis: Double,
    val cancelled: Boolean,
)

/** A search over a bundle's graphs. What is searched, and how, is the graphs' own business. */
internal interface Search {
    /**
     * The best translation of [source], which the end marker closes.
     *
     * @param cancelled asked now and then.
     * @param partial is told the tokens so far where the search can tell.
     */
    fun best(source: LongArray, beam: Int, cancelled: () -> Boolean, partial: (List<Int>) -> Unit): Found
}

internal const val PAD = 0
internal const val EOS = 3

/** Of one sentence's hypotheses, W P with padding, the best by [scores], W: its tokens and its score. */
internal fun best(texts: OnnxTensor, scores: OnnxTensor): Pair<List<Int>, Float> {
    val values = FloatArray(scores.info.numElements.toInt()).also { scores.floatBuffer.get(it) }
    val row = values.indices.maxByOrNull { values[it] } ?: 0
    val all = LongArray(texts.info.numElements.toInt()).also { texts.longBuffer.get(it) }
    val width = all.size / values.size
    return all.slice(row * width until (row + 1) * width).map(Long::toInt).filter { it != PAD } to values[row]
}

/** @throws BundleException the scores of the model are not finite numbers. */
internal fun finite(score: Float): Float = score.also {
    if (it.isNaN() || it.isInfinite()) {
        throw BundleException("the model's scores are not finite numbers; its training diverged, take another bundle.")
    }
}

internal fun OrtEnvironment.source(tokens: LongArray): OnnxTensor = OnnxTensor.createTensor(this, arrayOf(tokens))

internal fun failed(name: String, error: OrtException) = BundleException("ONNX Runtime cannot run $name: ${error.message}", error)

internal fun millisSince(start: Long): Double = (System.nanoTime() - start) / 1e6
