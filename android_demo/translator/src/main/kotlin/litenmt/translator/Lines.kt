package litenmt.translator

/**
 * Text that fits on one line: control characters, and all that any program takes for a line break, become spaces. Lone
 * surrogates, which are not text, become U+FFFD.
 */
internal fun clean(text: String): String {
    val cleaned = StringBuilder(text.length)
    for (i in text.indices) {
        val c = text[i]
        val lone = c.isHighSurrogate() && !(i + 1 < text.length && text[i + 1].isLowSurrogate()) ||
            c.isLowSurrogate() && !(i > 0 && text[i - 1].isHighSurrogate())
        val control = c < ' ' || c in '\u007f'..'\u009f' || c == '\u2028' || c == '\u2029'
        cleaned.append(if (lone) '\ufffd' else if (control) ' ' else c)
    }
    return cleaned.toString()
}
