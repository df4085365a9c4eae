package litenmt.translator

import java.io.File
import java.io.IOException
import java.security.MessageDigest

/**
 * A bundle whose files have been verified: all that a device needs to translate, in one folder.
 *
 * It may come from a stranger: nothing is read before its size and checksum are right, and no name leads out of it.
 *
 * @property folder where its files lie; they must not change as long as the bundle is in use.
 */
class Bundle internal constructor(val folder: File, val manifest: Manifest) {

    internal fun has(name: String): Boolean = name in manifest.files

    /** One of the files that the manifest lists. */
    internal fun file(name: String): File {
        if (!has(name)) throw BundleException("${folder.name} lists no $name; take another copy.")
        return File(folder, name)
    }

    companion object {
        /** @throws BundleException it is missing, damaged, altered, of another version, or not what it says. */
        fun open(folder: File): Bundle {
            val manifest = Manifest.read(readManifest(folder), folder.name)
            for ((name, listed) in manifest.files) verify(File(folder, name), listed)
            return Bundle(folder, manifest)
        }

        /**
         * Write a zip's files to a folder, whole or not at all; what was in the folder before is replaced.
         *
         * @throws BundleException it is no bundle, or there is no room. The folder is as it was, and nothing is left
         * beside it.
         */
        @Synchronized
        fun unpack(zip: File, into: File): Bundle = unpack(zip, into, File::getUsableSpace)

        private fun readManifest(folder: File): ByteArray {
            val file = File(folder, Manifest.NAME)
            if (!file.isFile) throw BundleException("${folder.name} is no bundle: it holds no ${Manifest.NAME}.")
            return try {
                file.inputStream().use { it.readAtMost(Manifest.LARGEST) }
            } catch (error: IOException) {
                throw BundleException("cannot read $file: ${error.message}.", error)
            } ?: throw BundleException("${folder.name} is no bundle: its ${Manifest.NAME} is over ${Manifest.LARGEST} bytes long.")
        }

        private fun verify(file: File, listed: Listed) {
            if (!file.isFile) throw BundleException("${file.name} is missing, or no file; take another copy of the bundle.")
            if (file.length() != listed.bytes) {
                throw BundleException(
                    "${file.name} is truncated or altered: ${file.length()} bytes, not ${listed.bytes}; take another copy of the bundle.",
                )
            }
            val digest = MessageDigest.getInstance("SHA-256")
            try {
                file.inputStream().use { input ->
                    val buffer = ByteArray(1 shl 16)
                    while (true) digest.update(buffer, 0, input.read(buffer).takeIf { it >= 0 } ?: break)
                }
            } catch (error: IOException) {
                throw BundleException("cannot read $file: ${error.message}.", error)
            }
            if (hex(digest.digest()) != listed.sha256) {
                throw BundleException("${file.name} is altered: its checksum is not the one saved; take another copy of the bundle.")
            }
        }
    }
}
