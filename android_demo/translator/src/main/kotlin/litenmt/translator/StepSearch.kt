package litenmt.translator

import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OnnxValue
import ai.onnxruntime.OrtException
import ai.onnxruntime.OrtSession

private const val NEXT = "next."

/**
 * The same search, its steps taken from outside, so that it can tell how far it is and stop between two steps.
 *
 * `begin.onnx` gives every tensor that a step reads, by name; `advance.onnx` gives `going_on` and a `next.NAME` for each
 * tensor NAME that a step changes. They stay in ONNX Runtime's memory.
 */
internal class StepSearch(private val graphs: Graphs, private val lengths: Manifest.Lengths) : Search {

    override fun best(source: LongArray, beam: Int, cancelled: () -> Boolean, partial: (List<Int>) -> Unit): Found {
        val begin = graphs[BEGIN]
        val advance = graphs[ADVANCE]
        val start = System.nanoTime()
        val known = HashMap<String, OnnxTensor>()
        try {
            known["source"] = graphs.environment.source(source)
            val settings = mapOf(
                "beam" to beam.toLong(),
                "min_length" to lengths.min,
                "max_length" to lengths.max,
                "length_penalty" to lengths.penalty,
            )
            for ((name, value) in settings) known[name] = OnnxTensor.createTensor(graphs.environment, value)
            known.takeIn(BEGIN, begin, "")
            val encodeMillis = millisSince(start)
            var position = 0L
            do {
                if (cancelled()) {
                    val (tokens, _) = best(known.getValue("history"), known.getValue("total"))
                    return Found(tokens, Float.NaN, encodeMillis, millisSince(start), cancelled = true)
                }
                known.put("position", OnnxTensor.createTensor(graphs.environment, position++))?.close()
                known.takeIn(ADVANCE, advance, NEXT)
                partial(best(known.getValue("history"), known.getValue("total")).first)
            } while (known.getValue("going_on").value as Boolean)
            val (tokens, score) = best(known.getValue("texts"), known.getValue("scores"))
            return Found(tokens, finite(score), encodeMillis, millisSince(start), cancelled = false)
        } catch (error: OrtException) {
            throw failed(ADVANCE, error)
        } finally {
            known.values.forEach(OnnxTensor::close)
        }
    }

    /** Run a graph on what it reads of these, and put what it gives, less a prefix, in the place of the old. */
    private fun HashMap<String, OnnxTensor>.takeIn(name: String, session: OrtSession, prefix: String) {
        val given = session.inputNames.associateWith {
            get(it) ?: throw BundleException("$name wants $it, which nothing gives; take another copy.")
        }
        for ((output, value: OnnxValue) in session.run(given)) {
            put(output.removePrefix(prefix), value as OnnxTensor)?.close()
        }
    }
}
