package litenmt.app.state

import java.io.File
import java.util.concurrent.Executor
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import litenmt.translator.Bundle
import org.junit.rules.TemporaryFolder

/** A bundle as a folder and as a .zip. */
val BUNDLE = File(System.getProperty("litenmt.bundle"))
val ZIP = File(System.getProperty("litenmt.zip"))

/** Models in a folder that is thrown away, [ZIP]'s among them if [full]. */
fun models(folder: TemporaryFolder, full: Boolean = true): Models =
    Models(folder.newFolder()).also { if (full) it.add(ZIP.inputStream()) }

fun languages(bundle: Bundle) = "${bundle.manifest.source}-${bundle.manifest.target}"

/** A main thread that a test steps through. */
class Main : Executor {
    private val posted = LinkedBlockingQueue<Runnable>()

    override fun execute(what: Runnable) = posted.put(what)

    fun until(done: () -> Boolean) {
        while (!done()) checkNotNull(posted.poll(30, TimeUnit.SECONDS)) { "nothing happened." }.run()
    }
}
