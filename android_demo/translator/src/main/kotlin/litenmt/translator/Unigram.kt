package litenmt.translator

/** The most probable cut into pieces (Kudo 2018), by Viterbi's rule; a character that is no piece costs the most. */
internal class Unigram(ids: Map<String, Int>, private val scores: FloatArray) : Segmenter(ids) {
    private val longest = ids.keys.maxOfOrNull(String::length) ?: 0
    private val unknown = (ids.values.minOfOrNull { scores[it] } ?: 0f) - 10f

    override fun ends(text: String): List<Int> {
        val best = FloatArray(text.length + 1)
        val from = IntArray(text.length + 1) { -1 }
        fun offer(start: Int, end: Int, score: Float) {
            // In double precision, as SentencePiece compares; it keeps single.
            val sum = if (score == unknown) (score + best[start]).toDouble() else score.toDouble() + best[start]
            if (from[end] < 0 || sum > best[end]) {
                best[end] = sum.toFloat()
                from[end] = start
            }
        }
        var start = 0
        while (start < text.length) {
            val next = start + Character.charCount(text.codePointAt(start))
            var single = false
            for (end in next..minOf(start + longest, text.length)) {
                val id = ids[text.substring(start, end)] ?: continue
                offer(start, end, scores[id])
                single = single || end == next
            }
            if (!single) offer(start, next, unknown)
            start = next
        }
        return generateSequence(text.length) { from[it] }.takeWhile { it > 0 }.toList().asReversed()
    }
}
