package litenmt.translator

import ai.onnxruntime.OrtEnvironment
import ai.onnxruntime.OrtException
import ai.onnxruntime.OrtLoggingLevel
import ai.onnxruntime.OrtSession
import java.io.Closeable
import java.io.IOException
import java.io.RandomAccessFile
import java.nio.channels.FileChannel

internal const val GREEDY = "greedy.onnx"
internal const val BEAM = "beam.onnx"
internal const val BEGIN = "begin.onnx"
internal const val ADVANCE = "advance.onnx"

/** A bundle's graphs in ONNX Runtime, each opened when it is first asked for. */
internal class Graphs(private val bundle: Bundle, private val threads: Int) : Closeable {
    val environment: OrtEnvironment = OrtEnvironment.getEnvironment().also { it.setTelemetry(false) }
    private val sessions = HashMap<String, OrtSession>()

    fun has(name: String): Boolean = bundle.has(name)

    /** @throws BundleException the graph is not there, or not one that ONNX Runtime can open. */
    @Synchronized
    operator fun get(name: String): OrtSession = sessions.getOrPut(name) {
        val file = bundle.file(name)
        bundle.file(WEIGHTS)
        try {
            RandomAccessFile(file, "r").use {
                confine(Message(it.channel.map(FileChannel.MapMode.READ_ONLY, 0, it.length())), name)
            }
            OrtSession.SessionOptions().use {
                it.setIntraOpNumThreads(threads)
                it.setSessionLogLevel(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL) // errors are thrown
                environment.createSession(file.path, it)
            }
        } catch (error: OrtException) {
            throw BundleException("ONNX Runtime ${environment.version} cannot open $name: ${error.message}", error)
        } catch (error: IOException) {
            throw BundleException("cannot read $file: ${error.message}.", error)
        }
    }

    @Synchronized
    override fun close() {
        sessions.values.forEach(OrtSession::close)
        sessions.clear()
    }
}
