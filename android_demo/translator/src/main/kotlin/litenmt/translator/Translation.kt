package litenmt.translator

/**
 * A translation of a text.
 *
 * @property tokens numbers of the target's pieces, without end markers.
 * @property score log-probability after the length penalty, natural logarithm; of a text in parts the sum. NaN where it
 * was [cancelled].
 * @property encodeMillis from the source's tokens to the search's first step; NaN where the search was one call, which
 * does not tell.
 * @property millisPerToken of the search after that, the end marker being a token too.
 * @property cancelled it is what had been said by then.
 */
class Translation(
    val text: String,
    val tokens: List<Int>,
    val score: Float,
    val encodeMillis: Double,
    val millisPerToken: Double,
    val cancelled: Boolean,
)
