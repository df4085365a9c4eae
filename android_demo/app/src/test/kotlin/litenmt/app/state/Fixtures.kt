package litenmt.app.state

import java.io.ByteArrayOutputStream
import java.io.File
import java.util.concurrent.Executor
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import java.util.zip.ZipEntry
import java.util.zip.ZipOutputStream
import litenmt.translator.Bundle
import org.junit.rules.TemporaryFolder

/** A bundle's files, and the bundle as a .zip. */
val FILES: List<File> = File(System.getProperty("litenmt.bundle")).listFiles().orEmpty().toList()
val ZIP: ByteArray = ByteArrayOutputStream().also { bytes ->
    ZipOutputStream(bytes).use { zip ->
        for (file in FILES) {
            zip.putNextEntry(ZipEntry(file.name))
            zip.write(file.readBytes())
        }
    }
}.toByteArray()

/** Models in a folder that is thrown away, [ZIP]'s among them if [full]. */
fun models(folder: TemporaryFolder, full: Boolean = true): Models =
    Models(folder.newFolder()).also { if (full) it.add(ZIP.inputStream()) }

fun languages(bundle: Bundle) = "${bundle.manifest.source}-${bundle.manifest.target}"

/** A main thread that a test steps through. */
class Main : Executor {
    private val posted = LinkedBlockingQueue<Runnable>()
    val waiting get() = posted.size

    override fun execute(what: Runnable) = posted.put(what)

    fun until(done: () -> Boolean) {
        while (!done()) checkNotNull(posted.poll(30, TimeUnit.SECONDS)) { "nothing happened." }.run()
    }
}
