package litenmt.app.state

import java.io.BufferedInputStream
import java.io.File
import java.io.IOException
import java.io.InputStream
import litenmt.translator.Bundle
import litenmt.translator.BundleException
import litenmt.translator.Manifest

/** There is no model to work with. */
class NoModel : Exception("there is no model on this device.")

/** The storage is full. */
class NoRoom(cause: IOException) : IOException("the storage is full.", cause)

/**
 * The models on this device, each a bundle in a folder of [root]. What is not whole is never among them: a bundle is
 * written and verified beside them first.
 *
 * Of several threads, one waits for the other.
 */
class Models(private val root: File) {
    private val part = File(root, ".part")
    private var failed: Exception? = null // why there may be no built-in model

    /** Of all models, the one that came with the app first. */
    @Synchronized
    fun names(): List<String> =
        root.listFiles { file -> file.isDirectory && !file.name.startsWith(".") }.orEmpty().map { it.name }
            .sortedWith(compareBy({ it != BUILT_IN }, { it }))

    /**
     * The model of this name, verified; any other, where there is none of this name.
     *
     * @throws NoModel there is none at all; where the one that came with the app could not be installed, why.
     * @throws litenmt.translator.BundleException it is damaged.
     */
    @Synchronized
    fun open(name: String?): Bundle = Bundle.open(File(root, nameOr(name)))

    /** [name] if there is such a model, else the first. */
    @Synchronized
    fun nameOr(name: String?): String {
        val all = names()
        return name.takeIf { it in all } ?: all.firstOrNull() ?: throw failed ?: NoModel()
    }

    /** Make the files that came with the app the model [BUILT_IN], in the place of an earlier version's. */
    @Synchronized
    fun install(files: Map<String, () -> InputStream>) = try {
        writing {
            for ((name, open) in files) copy(open(), File(part, name))
            Bundle.open(part)
            place(BUILT_IN)
        }
    } catch (error: Exception) {
        failed = error
        throw error
    }

    /**
     * Add the bundle that a .zip holds.
     *
     * @return its name.
     * @throws NoRoom and litenmt.translator.BundleException; the models are as they were.
     */
    @Synchronized
    fun add(zip: InputStream): String = writing {
        val archive = File(part, "bundle.zip")
        val start = BufferedInputStream(zip).apply { mark(2) }
        if (start.read() != 'P'.code || start.read() != 'K'.code) { // before a film fills the storage
            start.close()
            throw BundleException("the file is no .zip; choose one that lite-nmt export wrote.")
        }
        copy(start.apply { reset() }, archive)
        val folder = File(part, "bundle")
        val name = free(Bundle.unpack(archive, folder).manifest)
        move(folder, File(root, name))
        name
    }

    @Synchronized
    fun delete(name: String) {
        File(root, name).deleteRecursively()
    }

    private fun free(manifest: Manifest): String {
        val name = "${manifest.source}-${manifest.target}-${manifest.precision}"
        val taken = names()
        return generateSequence(1) { it + 1 }.map { if (it == 1) name else "$name-$it" }.first { it !in taken }
    }

    private fun place(name: String) {
        delete(name)
        move(part, File(root, name))
    }

    private fun <T> writing(write: () -> T): T {
        part.deleteRecursively()
        try {
            if (!part.mkdirs()) throw IOException("cannot make $part.")
            return write()
        } finally {
            part.deleteRecursively()
        }
    }

    private fun copy(from: InputStream, to: File) {
        from.use { input ->
            val buffer = ByteArray(1 shl 16)
            to.outputStream().use { output ->
                while (true) {
                    val count = input.read(buffer).takeIf { it >= 0 } ?: break
                    try {
                        output.write(buffer, 0, count)
                    } catch (error: IOException) { // of the device's storage, not of the source
                        throw if (root.usableSpace < 2 * buffer.size) NoRoom(error) else error
                    }
                }
            }
        }
    }

    private fun move(from: File, to: File) {
        if (!from.renameTo(to)) throw IOException("cannot move $from to $to.")
    }

    companion object {
        const val BUILT_IN = "built-in"
    }
}
