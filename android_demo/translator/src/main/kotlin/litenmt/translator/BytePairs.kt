package litenmt.translator

import java.util.PriorityQueue

/** Byte-pair merges (Sennrich et al. 2016): of all neighbours that make a piece the best-scored are joined first. */
internal class BytePairs(ids: Map<String, Int>, private val scores: FloatArray) : Segmenter(ids) {

    /** Two symbols side by side, and where they end; stale once one of them has grown. */
    private class Pair(val left: Int, val right: Int, val end: Int, val score: Float)

    override fun ends(text: String): List<Int> {
        // A symbol is known by where it starts.
        val end = IntArray(text.length)
        val before = IntArray(text.length) { -1 }
        val pairs = PriorityQueue<Pair> { a, b ->
            val byScore = b.score.compareTo(a.score)
            if (byScore != 0) byScore else a.left.compareTo(b.left)
        }
        fun add(left: Int, right: Int) {
            if (left < 0 || right >= text.length) return
            val id = ids[text.substring(left, end[right])] ?: return
            pairs += Pair(left, right, end[right], scores[id])
        }
        var at = 0
        while (at < text.length) {
            end[at] = at + Character.charCount(text.codePointAt(at))
            if (end[at] < text.length) before[end[at]] = at
            at = end[at]
        }
        at = 0
        while (at < text.length) {
            if (before[at] >= 0) add(before[at], at)
            at = end[at]
        }
        while (pairs.isNotEmpty()) {
            val pair = pairs.poll()!!
            if (end[pair.left] != pair.right || end[pair.right] != pair.end) continue
            end[pair.left] = pair.end
            end[pair.right] = -1 // no symbol starts here any more
            if (pair.end < text.length) before[pair.end] = pair.left
            add(before[pair.left], pair.left)
            add(pair.left, pair.end)
        }
        return generateSequence(end.firstOrNull()) { end.getOrNull(it) }.toList()
    }
}
