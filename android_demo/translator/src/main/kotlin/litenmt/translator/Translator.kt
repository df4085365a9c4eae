package litenmt.translator

import java.io.Closeable
import java.io.File
import java.io.IOException
import java.util.concurrent.locks.ReentrantReadWriteLock
import kotlin.concurrent.read
import kotlin.concurrent.write

/** More threads than these slow a small model down. */
private const val MOST_THREADS = 4

private val NEVER: () -> Boolean = { false }
private val NOBODY: (String) -> Unit = {}

/**
 * A bundle's model, ready to translate, to the same tokens as the Python runtime's.
 *
 * Several threads may translate at once.
 *
 * @param threads of ONNX Runtime; 0 leaves them to it.
 * @throws BundleException the vocabulary or a graph cannot be read.
 */
class Translator(
    val bundle: Bundle,
    threads: Int = Runtime.getRuntime().availableProcessors().coerceAtMost(MOST_THREADS),
) : Closeable {
    private val graphs: Graphs
    private val source: SentencePiece
    private val target: SentencePiece
    private val whole: Search
    private val steps: Search
    private val open = ReentrantReadWriteLock() // held for reading while translating
    @Volatile private var closed = false

    /** From the bundle's verified files to a model that can translate: vocabulary and graphs, milliseconds. */
    val loadMillis: Double

    init {
        require(threads in 0..1024) { "threads is $threads; it must be between 0 and 1024." }
        val start = System.nanoTime()
        source = vocabulary(bundle.file(SOURCE))
        target = if (bundle.manifest.joint) source else vocabulary(bundle.file(TARGET))
        graphs = Graphs(bundle, threads)
        whole = WholeSearch(graphs)
        steps = StepSearch(graphs, bundle.manifest.lengths)
        try {
            if (graphs.has(ADVANCE)) listOf(BEGIN, ADVANCE).forEach(graphs::get)
            else graphs[if (bundle.manifest.beam > 1) BEAM else GREEDY]
        } catch (error: Throwable) {
            graphs.close()
            throw error
        }
        loadMillis = millisSince(start)
    }

    /**
     * Translate a text; control characters and line breaks are read as spaces. What is longer than any source seen in
     * training is translated in parts.
     *
     * @param beam hypotheses side by side; 1 is greedy.
     * @param cancelled asked at each step; once it says true, what has been said so far is returned.
     * @param onPartial is told the text so far, again and again, on the calling thread; its last words may change.
     * @throws BundleException the model cannot be run.
     * @throws IllegalArgumentException this bundle has no such beam.
     * @throws IllegalStateException this is closed.
     */
    fun translate(
        text: String,
        beam: Int = bundle.manifest.beam,
        cancelled: () -> Boolean = NEVER,
        onPartial: (String) -> Unit = NOBODY,
    ): Translation = open.read {
        check(!closed) { "the translator is closed." }
        require(beam in 1..bundle.manifest.largestBeam) {
            "beam is $beam; with this vocabulary it must be between 1 and ${bundle.manifest.largestBeam}."
        }
        val search = search(beam, streams = onPartial !== NOBODY)
        val tokens = source.encode(clean(text)).map(Int::toLong)
        val parts = if (tokens.isEmpty()) emptyList() else split(tokens.map { source.piece(it.toInt()) }, longest)
        val found = mutableListOf<Found>()
        var said = ""
        val stop = { closed || cancelled() }
        for (part in parts) {
            val one = search.best((tokens.slice(part) + EOS.toLong()).toLongArray(), beam, stop) {
                onPartial(joined(said, target.decode(it.subList(0, target.whole(it)))))
            }
            found += one
            said = joined(said, target.decode(one.tokens))
            onPartial(said)
            if (one.cancelled) break
        }
        translation(said, found)
    }

    /** Waits for translations that are under way, which stop at their next step. */
    override fun close() {
        closed = true
        open.write { graphs.close() }
    }

    private val longest = maxOf(bundle.manifest.maxLength - 1, 1) // without the end marker

    /** Whether the steps can be taken with another beam than the bundle's: not where their graph has a default. */
    private val anyBeam = graphs.has(ADVANCE) && "beam" in graphs[BEGIN].inputNames

    private fun search(beam: Int, streams: Boolean): Search = when {
        streams && graphs.has(ADVANCE) && (anyBeam || beam == bundle.manifest.beam) -> steps
        beam == 1 || beam == bundle.manifest.beam -> whole
        anyBeam -> steps
        else -> throw IllegalArgumentException("beam is $beam; this bundle holds a beam of ${bundle.manifest.beam}, or 1.")
    }

    private fun joined(said: String, more: String): String {
        val text = clean(more)
        return if (said.isEmpty() || text.isEmpty()) said + text else "$said $text"
    }

    private fun translation(text: String, found: List<Found>): Translation {
        val encoding = found.sumOf(Found::encodeMillis)
        val searching = found.sumOf(Found::millis) - if (encoding.isNaN()) 0.0 else encoding
        return Translation(
            text,
            found.flatMap(Found::tokens),
            found.fold(0f) { sum, one -> sum + one.score },
            encoding,
            if (found.isEmpty()) 0.0 else searching / found.sumOf { it.tokens.size + 1 },
            found.any(Found::cancelled),
        )
    }

    private fun vocabulary(file: File): SentencePiece = try {
        SentencePiece(file.readBytes())
    } catch (error: IOException) {
        throw BundleException("cannot read $file: ${error.message}.", error)
    } catch (error: IllegalArgumentException) {
        throw BundleException("${file.name} is no SentencePiece model for this app: ${error.message}; take another bundle.", error)
    }
}
