package litenmt.translator

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.security.MessageDigest

/** Counted in the papers' convention (`paper`), and with the vocabulary projection and all parameters (`full`). */
class Counts(val paper: Long, val full: Long)

/** BLEU of the model of this very precision, as measured when it was exported. */
class Bleu(val value: Double, val sentences: Int, val split: String)

/** What a manifest says of a file. */
internal class Listed(val bytes: Long, val sha256: String)

/**
 * What a bundle says of itself.
 *
 * @property source what it translates from, as "de".
 * @property precision of the weights: "fp32", "int8", ...
 * @property multAdds multiplications with additions for 30 source and 30 target tokens.
 * @property bleu null where it was not measured.
 * @property bytes of all files, the manifest left out.
 * @property beam hypotheses side by side in the search the bundle was made for; 1 is greedy.
 * @property maxLength pieces of the longest source seen in training, the end marker included; longer ones are
 * translated in parts.
 */
class Manifest internal constructor(
    val source: String,
    val target: String,
    val precision: String,
    val multAdds: Counts,
    val parameters: Counts,
    val bleu: Bleu?,
    val bytes: Long,
    val beam: Int,
    val maxLength: Int,
    val description: String,
    internal val joint: Boolean,
    internal val largestBeam: Int,
    internal val lengths: Lengths,
    internal val files: Map<String, Listed>,
) {
    /** How long translations are wished; the graphs know what the numbers mean. */
    internal class Lengths(val min: Long, val max: Long, val penalty: Float)

    internal companion object {
        const val NAME = "manifest.json"

        /** Bytes; a real one has a few thousand. */
        const val LARGEST = 1_000_000

        /** So large that no sum of what a manifest can hold overflows. */
        private const val LARGEST_NUMBER = 1L shl 50
        private const val FIRST_BUT_EOS = 3 // pad, unk and bos are never said
        private const val FORMAT = "lite-nmt bundle"
        private const val VERSION = "1"
        private const val TRANSLATE = "translate"
        private val FILE = Regex("[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
        private val CODE = Regex("[A-Za-z0-9_][A-Za-z0-9_.-]{0,29}") // an app may name a folder by it

        /**
         * @param where the bundle, for messages.
         * @throws BundleException it is damaged, altered, of another version, or no manifest of a bundle.
         */
        fun read(content: ByteArray, where: String): Manifest {
            val root = try {
                Json.parse(Charsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(content)).toString())
            } catch (error: CharacterCodingException) {
                throw BundleException("$where is damaged: its $NAME is not UTF-8; take another copy.", error)
            } catch (error: IllegalArgumentException) {
                throw BundleException("$where is damaged: $NAME: ${error.message}; take another copy.", error)
            }
            if (root !is Map<*, *> || root["format"] != FORMAT) {
                throw BundleException("$where is no bundle: its $NAME does not describe a $FORMAT.")
            }
            val version = (root["version"] as? Number)?.spelling
            if (version != VERSION) {
                throw BundleException(
                    "$where is of bundle version ${version ?: "unknown"}; this release reads version $VERSION.",
                )
            }
            if (root["sha256"] != sha256(Json.write(root - "sha256").toByteArray())) {
                throw BundleException("$where is altered: the checksum of its $NAME is not the one saved; take another copy.")
            }
            val manifest = try {
                said(root)
            } catch (error: IllegalArgumentException) {
                throw BundleException("$where is damaged: its $NAME ${error.message}; take another copy.", error)
            }
            if (manifest.files.keys.none { it.endsWith(".onnx") }) {
                throw BundleException("$where is not for ONNX Runtime, which runs it here; export it with --to onnx.")
            }
            val task = (root["config"] as? Map<*, *>)?.get("task")
            if (task != null && task != TRANSLATE) {
                throw BundleException("$where does not translate; its task is another, $task.")
            }
            return manifest
        }

        private fun said(root: Map<*, *>): Manifest {
            val files = (root["files"] as? Map<*, *> ?: throw IllegalArgumentException("lists no files"))
                .entries.associate { (name, said) -> (name as String) to listed(name, said as? Map<*, *>) }
            val joint = root.at("config.vocabulary.joint", "true or false") { this as? Boolean }
            for (name in listOfNotNull(SOURCE, TARGET.takeUnless { joint })) {
                require(name in files) { "does not list $name" }
            }
            return Manifest(
                root.code("languages.source"),
                root.code("languages.target"),
                root.code("precision"),
                Counts(root.whole("mult_adds.paper"), root.whole("mult_adds.full")),
                Counts(root.whole("parameters.paper"), root.whole("parameters.full")),
                root["bleu"]?.let {
                    Bleu(root.real("bleu.value"), root.whole("bleu.sentences").toInt(), root.text("bleu.split"))
                },
                files.values.sumOf(Listed::bytes),
                root.whole("config.decode.beam", 1L..1000L).toInt(),
                root.whole("config.vocabulary.max_length", 1L..100_000L).toInt(),
                root.text("config.description"),
                joint,
                largestBeam(root),
                Lengths(
                    root.whole("config.decode.min_length"),
                    root.whole("config.decode.max_length"),
                    root.real("config.decode.length_penalty").toFloat(),
                ),
                files,
            )
        }

        /** So many continuations are compared that twice the beam must be among them. */
        private fun largestBeam(root: Map<*, *>): Int {
            val shortlist = root["shortlist"] as? Map<*, *>
            val among = if (shortlist?.get("least") != null) root.whole("shortlist.least", 1L..1_000_000L)
            else root.whole("config.vocabulary.target", 8L..1_000_000L) - FIRST_BUT_EOS
            return (among / 2).toInt()
        }

        private fun listed(name: String, said: Map<*, *>?): Listed {
            require(FILE.matches(name)) { "names a file outside its folder, ${Json.write(name)}" }
            requireNotNull(said) { "does not say what $name is" }
            return Listed(said.whole("bytes"), said.text("sha256"))
        }

        private fun Map<*, *>.text(path: String): String = at(path, "a text") { this as? String }

        private fun Map<*, *>.code(path: String): String =
            at(path, "a short name") { (this as? String)?.takeIf(CODE::matches) }

        private fun Map<*, *>.real(path: String): Double =
            at(path, "a number") { (this as? Number)?.spelling?.toDouble()?.takeUnless(Double::isInfinite) }

        private fun Map<*, *>.whole(path: String, range: LongRange = 0L..LARGEST_NUMBER): Long =
            at(path, "a whole number of $range") { (this as? Number)?.spelling?.toLongOrNull()?.takeIf { it in range } }

        /** The value at "outer.inner", if it is what it must be. */
        private fun <T : Any> Map<*, *>.at(path: String, kind: String, convert: Any.() -> T?): T {
            val value = path.split('.').fold<String, Any?>(this) { inner, key -> (inner as? Map<*, *>)?.get(key) }
            return requireNotNull(value?.convert()) { "does not say $path, which must be $kind" }
        }
    }
}

internal const val SOURCE = "source.spm"
internal const val TARGET = "target.spm"

internal fun sha256(content: ByteArray): String = hex(MessageDigest.getInstance("SHA-256").digest(content))

internal fun hex(bytes: ByteArray): String = bytes.joinToString("") { (it.toInt() and 255).toString(16).padStart(2, '0') }
