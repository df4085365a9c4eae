package litenmt.translator

import java.io.ByteArrayOutputStream

/**
 * SentencePiece's normaliser: the longest match of the model's own table of characters, then spaces.
 *
 * @param table `precompiled_charsmap`: the size of a double-array trie, the trie (Yata et al. 2007, Darts-clone), and
 * the texts that its values point to, each closed by a zero. Empty where nothing is replaced.
 * @param prefix whether a space is put before the text.
 * @param squeeze whether spaces at the ends, and all but the first of several, are left out.
 * @throws IllegalArgumentException the table is damaged.
 */
internal class Normalizer(table: ByteArray, private val prefix: Boolean, private val squeeze: Boolean) {
    private val trie: IntArray
    private val texts: ByteArray

    init {
        val size = if (table.isEmpty()) 0 else if (table.size < 4) -1 else int(table, 0)
        require(size >= 0 && size % 4 == 0 && size <= table.size - minOf(4, table.size)) { "its normaliser is damaged" }
        trie = IntArray(size / 4) { int(table, 4 + 4 * it) }
        texts = table.copyOfRange(minOf(4 + size, table.size), table.size)
        require(texts.isEmpty() || texts.last() == 0.toByte()) { "its normaliser is damaged" }
    }

    /** Normalised text, with "▁" for each space. */
    fun normalize(text: String): String {
        val input = text.toByteArray()
        val output = ByteArrayOutputStream(input.size + 16)
        var at = 0
        if (squeeze) {
            while (at < input.size) {
                val match = match(input, at)
                if (!(match.size == 1 && match.bytes[match.from] == BLANK)) break
                at += match.taken
            }
        }
        if (at == input.size) return ""
        if (prefix) output.write(BLANK.toInt())
        var afterSpace = squeeze
        while (at < input.size) {
            val match = match(input, at)
            at += match.taken
            var from = match.from
            val end = match.from + match.size
            while (afterSpace && from < end && match.bytes[from] == BLANK) from++
            if (from < end) {
                output.write(match.bytes, from, end - from)
                afterSpace = match.bytes[end - 1] == BLANK
            }
            if (!squeeze) afterSpace = false
        }
        val normal = output.toString("UTF-8").replace(' ', SPACE)
        return if (squeeze) normal.trimEnd(SPACE) else normal
    }

    /** [size] bytes at [from] that stand for [taken] bytes of the input. */
    private class Match(val bytes: ByteArray, val from: Int, val size: Int, val taken: Int)

    private fun match(input: ByteArray, at: Int): Match {
        var value = -1
        var taken = 0
        var node = if (trie.isEmpty()) 0 else offset(unit(0))
        var i = at
        while (i < input.size && trie.isNotEmpty()) {
            val byte = input[i].toInt() and 255
            node = node xor byte
            val unit = unit(node)
            if (unit and LABEL != byte) break
            node = node xor offset(unit)
            i++
            if (unit ushr 8 and 1 == 1) { // a key ends here
                value = unit(node) and Int.MAX_VALUE
                taken = i - at
            }
        }
        if (taken == 0) {
            val length = maxOf(1, utf8Length(input, at, input.size))
            return Match(input, at, length, length)
        }
        var end = value
        while (end in texts.indices && texts[end] != 0.toByte()) end++
        return Match(texts, value, end - value, taken)
    }

    /** A unit of the trie; outside of a damaged one there is nothing that matches. */
    private fun unit(index: Int): Int = if (index in trie.indices) trie[index] else Int.MIN_VALUE

    private fun offset(unit: Int): Int = unit ushr 10 shl (unit and 512 ushr 6)

    private companion object {
        const val BLANK: Byte = 32
        const val LABEL = 1 shl 31 or 255

        fun int(bytes: ByteArray, at: Int): Int =
            (0..3).fold(0) { value, i -> value or (bytes[at + i].toInt() and 255 shl (8 * i)) }
    }
}
