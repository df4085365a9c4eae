package litenmt.translator

import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer

/**
 * A SentencePiece model, byte-pair or unigram, to the same numbers as the library's own (Kudo and Richardson 2018).
 *
 * Models that ask for what no bundle's does (symbols of the user, a denormaliser, spaces after words) are refused.
 *
 * @throws IllegalArgumentException it is no such model.
 */
internal class SentencePiece(model: ByteArray) {
    private val pieces = ArrayList<String>()
    private val kinds = ArrayList<Int>()
    private val normalizer: Normalizer
    private val segmenter: Segmenter
    private val bytes = IntArray(256) { -1 }
    private val fallback: Boolean
    private val prefix: Boolean
    private val squeeze: Boolean

    init {
        val scores = ArrayList<Float>()
        val trainer = HashMap<Int, Long>()
        val normal = hashMapOf(PREFIX to 1L, SQUEEZE to 1L, ESCAPE to 1L)
        var table = ByteArray(0)
        Message(ByteBuffer.wrap(model)).fields { field ->
            val content = field.content ?: return@fields
            when (field.id) {
                1 -> {
                    var kind = NORMAL
                    var score = 0f
                    var piece = ""
                    content.fields {
                        when (it.id) {
                            1 -> piece = it.content?.text().orEmpty()
                            2 -> score = java.lang.Float.intBitsToFloat(it.number.toInt())
                            3 -> kind = it.number.toInt()
                        }
                    }
                    pieces += piece
                    scores += score
                    kinds += kind
                }
                2 -> content.fields { trainer[it.id] = it.number }
                3 -> content.fields { if (it.id == 2) table = it.content?.toByteArray() ?: table else normal[it.id] = it.number }
                5 -> content.fields { require(it.id != 2) { "it has a denormaliser" } }
            }
        }
        require(kinds.take(FIRST) == listOf(CONTROL, UNKNOWN, CONTROL, CONTROL)) {
            "it does not number pad, unk, bos, eos as 0 to 3"
        }
        require(kinds.drop(FIRST).all { it == NORMAL || it == BYTE }) { "it has symbols of its user" }
        require(normal[ESCAPE] == 1L && trainer[SUFFIX] != 1L) { "it marks spaces otherwise than by ▁ before a word" }
        fallback = trainer[FALLBACK] == 1L
        prefix = normal[PREFIX] == 1L
        squeeze = normal[SQUEEZE] == 1L
        normalizer = Normalizer(table, prefix, squeeze)
        val ids = HashMap<String, Int>()
        for (id in pieces.indices) {
            if (kinds[id] == NORMAL) ids[pieces[id]] = id
            if (kinds[id] == BYTE) bytes[byteOf(pieces[id]).also { require(it >= 0) { "its bytes are damaged" } }] = id
        }
        require(!fallback || bytes.none { it < 0 }) { "its bytes are not whole" }
        segmenter = when (trainer[KIND] ?: UNIGRAM) {
            UNIGRAM -> Unigram(ids, scores.toFloatArray())
            BPE -> BytePairs(ids, scores.toFloatArray())
            else -> throw IllegalArgumentException("it is neither byte-pair nor unigram")
        }
    }

    /** Token numbers of a text that [clean] made, without an end marker. */
    fun encode(text: String): IntArray {
        val normal = normalizer.normalize(text)
        val tokens = ArrayList<Int>()
        var start = 0
        for (end in segmenter.ends(normal)) {
            val id = segmenter.id(normal, start, end)
            if (id != UNK) tokens += id
            else if (fallback) normal.substring(start, end).toByteArray().mapTo(tokens) { bytes[it.toInt() and 255] }
            else if (tokens.lastOrNull() != UNK) tokens += UNK
            start = end
        }
        return tokens.toIntArray()
    }

    /** How a token is written. */
    fun piece(token: Int): String = pieces[token]

    /** Text of token numbers; special tokens are left out, and bytes that are no character become U+FFFD. */
    fun decode(tokens: List<Int>): String {
        val text = StringBuilder()
        val raw = ByteArrayOutputStream()
        var first = prefix || squeeze
        for (token in tokens) {
            if (token < FIRST) continue
            if (kinds[token] == BYTE) {
                raw.write(byteOf(pieces[token]))
                continue
            }
            flush(raw, text)
            val piece = pieces[token]
            val leading = first && text.isEmpty() && piece.startsWith(SPACE)
            text.append((if (leading) piece.substring(1) else piece).replace(SPACE, ' '))
            first = first && (squeeze || !leading) // of several first spaces one or all are left out
        }
        flush(raw, text)
        return text.toString()
    }

    private fun flush(raw: ByteArrayOutputStream, text: StringBuilder) {
        val said = raw.toByteArray()
        raw.reset()
        var at = 0
        while (at < said.size) {
            val length = utf8Length(said, at, said.size)
            text.append(if (length == 0) "\ufffd" else String(said, at, length, Charsets.UTF_8))
            at += maxOf(1, length)
        }
    }

    /** How many of the first tokens end with a whole character: the last may be bytes of one that is not yet whole. */
    fun whole(tokens: List<Int>): Int {
        for (back in 1..minOf(3, tokens.size)) {
            val byte = byteOf(pieces[tokens[tokens.size - back]])
            if (byte !in 0x80..0xBF) return if (utf8Announced(byte) > back) tokens.size - back else tokens.size
        }
        return tokens.size
    }

    private companion object {
        const val UNK = 1
        const val FIRST = 4 // after pad, unk, bos, eos
        const val NORMAL = 1
        const val UNKNOWN = 2
        const val CONTROL = 3
        const val BYTE = 6
        const val PREFIX = 3 // these are fields of NormalizerSpec
        const val SQUEEZE = 4
        const val ESCAPE = 5
        const val KIND = 3 // and these of TrainerSpec
        const val SUFFIX = 24
        const val FALLBACK = 35
        const val UNIGRAM = 1L
        const val BPE = 2L
    }
}

/** Cuts normalised text into pieces. */
internal abstract class Segmenter(protected val ids: Map<String, Int>) {
    /** Where each piece ends. */
    abstract fun ends(text: String): List<Int>

    /** The number of a piece, or the unknown one's. */
    fun id(text: String, from: Int, to: Int): Int = ids[text.substring(from, to)] ?: 1
}
