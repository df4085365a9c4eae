package litenmt.translator

private const val WIDE_ENDS = "。！？" // no space follows these
private const val ENDS = ".!?…$WIDE_ENDS"
private const val CLOSERS = "\"'”’»)]"
private const val SHORTEST = 8 // pieces; what ends sooner is more often an abbreviation than a sentence

/** SentencePiece's mark of a space before a piece. */
internal const val SPACE = '▁'

/**
 * Cut pieces into runs of at most [limit]; what fits stays whole.
 *
 * What does not fit is cut into its sentences; a sentence over the limit before the last word that does not fit, and a
 * word over the limit between two characters.
 */
internal fun split(pieces: List<String>, limit: Int): List<IntRange> {
    if (pieces.size <= limit) return listOf(pieces.indices)
    val runs = mutableListOf<IntRange>()
    var start = 0
    while (start < pieces.size) {
        val end = end(pieces, start, minOf(start + limit, pieces.size))
        runs += start until end
        start = end
    }
    return runs
}

/** Where a run from [start] ends, [stop] at the latest. */
private fun end(pieces: List<String>, start: Int, stop: Int): Int {
    for (i in start + SHORTEST..stop) {
        if (i < pieces.size && sentenceEnds(pieces, i)) return i
    }
    if (stop == pieces.size) return stop
    val places = stop downTo start + 1
    return places.firstOrNull { pieces[it].startsWith(SPACE) }
        ?: places.firstOrNull { !continues(pieces[it]) }
        ?: stop
}

/** Whether piece [i] begins a sentence. */
private fun sentenceEnds(pieces: List<String>, i: Int): Boolean {
    val ends = if (pieces[i].startsWith(SPACE)) ENDS else WIDE_ENDS
    val before = pieces.subList(i - 3, i).joinToString("").trimEnd { it in CLOSERS }
    return before.isNotEmpty() && before.last() in ends
}

/** Whether a piece is a byte, written <0x80> to <0xBF>, in the middle of a UTF-8 character. */
private fun continues(piece: String): Boolean = byteOf(piece) in 0x80..0xBF

/** The byte that a piece like <0x0A> stands for, or -1. */
internal fun byteOf(piece: String): Int =
    if (piece.length == 6 && piece.startsWith("<0x")) piece.substring(3, 5).toIntOrNull(16) ?: -1 else -1
