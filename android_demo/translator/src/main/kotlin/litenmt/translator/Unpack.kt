package litenmt.translator

import java.io.ByteArrayOutputStream
import java.io.File
import java.io.FileOutputStream
import java.io.IOException
import java.io.InputStream
import java.io.OutputStream
import java.util.zip.ZipEntry
import java.util.zip.ZipFile

/** Of a zip's content to the zip; a graph of pruned weights shrinks about tenfold. */
private const val LARGEST_RATIO = 100

/** As [Bundle.unpack] says; [room] tells how many bytes can be written to a folder. */
internal fun unpack(zip: File, into: File, room: (File) -> Long): Bundle {
    val folder = into.absoluteFile
    val partial = File(folder.parentFile, ".${folder.name}.partial")
    try {
        partial.deleteRecursively()
        write(zip, partial, room)
        val verified = Bundle.open(partial)
        replace(partial, folder)
        return Bundle(folder, verified.manifest)
    } catch (error: IOException) {
        throw BundleException("cannot unpack ${zip.name}: ${error.message}; what was there before is whole.", error)
    } finally {
        partial.deleteRecursively()
    }
}

private fun write(zip: File, to: File, room: (File) -> Long) {
    val archive = try {
        ZipFile(zip)
    } catch (error: IOException) {
        throw BundleException("${zip.name} is no bundle: ${error.message}.", error)
    } catch (error: IllegalArgumentException) { // a name in no known encoding
        throw BundleException("${zip.name} is no bundle: ${error.message}.", error)
    }
    archive.use {
        val entries = archive.entries().toList()
        val manifest = entries.find { it.name == Manifest.NAME }
            ?: throw BundleException("${zip.name} is no bundle: it holds no ${Manifest.NAME}.")
        val content = ByteArrayOutputStream()
        copy(archive, manifest, content, Manifest.LARGEST.toLong())
        val said = Manifest.read(content.toByteArray(), zip.name)
        if (said.bytes > LARGEST_RATIO * zip.length()) {
            throw BundleException(
                "${zip.name} says that it holds ${said.bytes} bytes, over $LARGEST_RATIO times its own size; it is no bundle.",
            )
        }
        if (entries.map(ZipEntry::getName).sorted() != (said.files.keys.toList() + Manifest.NAME).sorted()) {
            throw BundleException(
                "${zip.name} holds other files than its ${Manifest.NAME} lists, or one twice; take another copy.",
            )
        }
        if (!to.mkdirs()) throw IOException("no folder can be made in ${to.parent}")
        val free = room(to)
        if (said.bytes + content.size() > free) {
            throw BundleException(
                "${zip.name} needs ${said.bytes + content.size()} bytes and $free are free; make room and try again.",
            )
        }
        store(File(to, Manifest.NAME)) { content.writeTo(it) }
        for (entry in entries) {
            val listed = said.files[entry.name] ?: continue // the manifest itself
            store(File(to, entry.name)) { copy(archive, entry, it, listed.bytes) }
        }
    }
}

/** Copy what a zip holds under a name, unless it is longer than [most] bytes. */
private fun copy(archive: ZipFile, entry: ZipEntry, to: OutputStream, most: Long) {
    val name = File(archive.name).name
    val input = try {
        archive.getInputStream(entry)
    } catch (error: IOException) {
        throw BundleException("$name is damaged: ${entry.name}: ${error.message}; take another copy.", error)
    }
    val buffer = ByteArray(1 shl 16)
    var done = 0L
    input.use {
        while (true) {
            val count = try {
                input.read(buffer)
            } catch (error: IOException) {
                throw BundleException("$name is damaged: ${entry.name}: ${error.message}; take another copy.", error)
            }
            if (count < 0) return
            done += count
            if (done > most) {
                throw BundleException("$name is damaged: ${entry.name} is longer than $most bytes; take another copy.")
            }
            to.write(buffer, 0, count)
        }
    }
}

/** Write a file and wait until the disk has it. */
private fun store(file: File, write: (OutputStream) -> Unit) = FileOutputStream(file).use {
    write(it)
    it.fd.sync()
}

/** Move a finished folder into place. A folder cannot be renamed over another, so the old one steps aside first. */
private fun replace(new: File, folder: File) {
    val old = File(folder.parentFile, ".${folder.name}.old")
    old.deleteRecursively()
    val stepped = folder.exists()
    if (stepped && !folder.renameTo(old)) throw IOException("$folder cannot be replaced")
    if (!new.renameTo(folder)) {
        if (stepped) old.renameTo(folder)
        throw IOException("$folder cannot be written")
    }
    old.deleteRecursively()
}

/** All bytes, or null if there are more than [most]. */
internal fun InputStream.readAtMost(most: Int): ByteArray? {
    val content = ByteArrayOutputStream()
    val buffer = ByteArray(1 shl 14)
    while (true) {
        val count = read(buffer)
        if (count < 0) return content.toByteArray()
        content.write(buffer, 0, count)
        if (content.size() > most) return null
    }
}
