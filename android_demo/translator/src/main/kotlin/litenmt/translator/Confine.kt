package litenmt.translator

import java.util.ArrayDeque

internal const val WEIGHTS = "weights.bin"

/** Which messages of an ONNX file hold others, by the numbers of their fields, down to a tensor's external data. */
private val INSIDE = mapOf(
    "model" to mapOf(7 to "graph", 20 to "training", 25 to "function"),
    "training" to mapOf(1 to "graph", 2 to "graph"),
    "graph" to mapOf(1 to "node", 5 to "tensor", 15 to "sparse"),
    "function" to mapOf(7 to "node", 11 to "attribute"),
    "node" to mapOf(5 to "attribute"),
    "attribute" to mapOf(5 to "tensor", 6 to "graph", 10 to "tensor", 11 to "graph", 22 to "sparse", 23 to "sparse"),
    "sparse" to mapOf(1 to "tensor", 2 to "tensor"),
    "tensor" to mapOf(13 to "entry"),
)

/**
 * Refuse a graph whose weights lie anywhere but in the bundle's own file.
 *
 * ONNX names each external tensor's file in an entry with the key `location`. The whole file is read, as protobuf has
 * many ways to write the same.
 *
 * @throws BundleException it names another file, or is not whole.
 */
internal fun confine(graph: Message, name: String) {
    val waiting = ArrayDeque(listOf("model" to graph))
    while (waiting.isNotEmpty()) {
        val (kind, message) = waiting.removeLast()
        val said = HashMap<Int, String>()
        try {
            message.fields { field ->
                val content = field.content ?: return@fields
                if (kind == "entry") said[field.id] = content.text() // of several, the last one counts
                else INSIDE.getValue(kind)[field.id]?.let { waiting.add(it to content) }
            }
        } catch (error: IllegalArgumentException) {
            throw BundleException("$name is damaged: it is no whole ONNX graph; take another copy.", error)
        }
        if (said[1] == "location" && said[2] != WEIGHTS) {
            throw BundleException("$name wants weights from outside its bundle; take another copy.")
        }
    }
}
