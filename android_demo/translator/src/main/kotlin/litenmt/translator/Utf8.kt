package litenmt.translator

/** How many bytes the UTF-8 character at [at] has; 0 where there is no whole and valid one before [end]. */
internal fun utf8Length(bytes: ByteArray, at: Int, end: Int): Int {
    val first = bytes[at].toInt() and 255
    val length = utf8Announced(first)
    if (length == 0 || at + length > end) return 0
    for (i in 1 until length) if (bytes[at + i].toInt() and 0xC0 != 0x80) return 0
    val second = if (length > 1) bytes[at + 1].toInt() and 255 else 0
    val valid = when (first) {
        0xE0 -> second >= 0xA0 // what is shorter in two bytes
        0xED -> second < 0xA0 // surrogates
        0xF0 -> second >= 0x90
        0xF4 -> second < 0x90 // beyond U+10FFFF
        else -> true
    }
    return if (valid) length else 0
}

/** How many bytes a character has that begins with this one; 0 where none does. */
internal fun utf8Announced(first: Int): Int = when (first) {
    in 0x00..0x7F -> 1
    in 0xC2..0xDF -> 2
    in 0xE0..0xEF -> 3
    in 0xF0..0xF4 -> 4
    else -> 0
}
