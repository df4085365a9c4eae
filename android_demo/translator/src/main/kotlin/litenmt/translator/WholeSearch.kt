package litenmt.translator

import ai.onnxruntime.OnnxTensor
import ai.onnxruntime.OrtException
import ai.onnxruntime.OrtSession
import kotlin.concurrent.thread

private const val ASK_EVERY = 20L // milliseconds

/**
 * One call of a whole search's graph.
 *
 * Its beam is the one that it was exported with: ONNX Runtime's Java interface cannot feed an input that has a default.
 */
internal class WholeSearch(private val graphs: Graphs) : Search {

    override fun best(source: LongArray, beam: Int, cancelled: () -> Boolean, partial: (List<Int>) -> Unit): Found {
        val name = if (beam > 1) BEAM else GREEDY
        val session = graphs[name]
        val start = System.nanoTime()
        try {
            graphs.environment.source(source).use { given ->
                stoppable(cancelled) { options ->
                    session.run(mapOf("source" to given), setOf("target", "score", "logprob"), options)
                }?.use { result ->
                    val (tokens, score) = best(result["target"].get() as OnnxTensor, result["score"].get() as OnnxTensor)
                    return Found(tokens, finite(score), Double.NaN, millisSince(start), cancelled = false)
                }
            }
        } catch (error: OrtException) {
            throw failed(name, error)
        }
        return Found(emptyList(), Float.NaN, Double.NaN, millisSince(start), cancelled = true)
    }

    /** What [run] gives, or null if it was cancelled: another thread asks, as this one is busy. */
    private fun stoppable(cancelled: () -> Boolean, run: (OrtSession.RunOptions) -> OrtSession.Result): OrtSession.Result? =
        OrtSession.RunOptions().use { options ->
            var stopped = false
            var failed: Throwable? = null
            val watch = thread(name = "lite-nmt cancel", isDaemon = true) {
                try {
                    while (!cancelled()) Thread.sleep(ASK_EVERY)
                    stopped = true
                    options.setTerminate(true)
                } catch (error: InterruptedException) {
                    return@thread
                } catch (error: Throwable) {
                    failed = error
                    options.setTerminate(true)
                }
            }
            val result = try {
                run(options)
            } catch (error: OrtException) {
                null.also { failed = failed ?: error }
            } finally {
                watch.interrupt()
                watch.join()
            }
            if (result == null && !stopped) throw failed!!
            result
        }
}
