package litenmt.translator

/** A number of a JSON text, as it is spelled there: a checksum over the text needs each digit. */
internal class Number(val spelling: String)

/**
 * JSON as Python's `json` reads and writes it, so that checksums over it agree.
 *
 * Values are [Map], [List], [String], [Boolean], [Number] and null. A text that nests more than [DEEPEST] levels is
 * refused, as it could exhaust the stack.
 */
internal object Json {
    private const val DEEPEST = 100
    private val NUMBER = Regex("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")

    /** @throws IllegalArgumentException it is no JSON; the message says where. */
    fun parse(text: String): Any? = Parser(text).whole()

    /** The text of `json.dumps(value, sort_keys=True)`. Kotlin's own numbers are written too. */
    fun write(value: Any?): String = StringBuilder().also { write(value, it) }.toString()

    private fun write(value: Any?, to: StringBuilder) {
        when (value) {
            is Map<*, *> -> list(value.entries.sortedBy { it.key as String }, "{}", to) { (key, inner) ->
                write(key, to)
                to.append(": ")
                write(inner, to)
            }
            is List<*> -> list(value, "[]", to) { write(it, to) }
            is String -> quote(value, to)
            is Number -> to.append(value.spelling)
            else -> to.append(value) // null, true, false and numbers
        }
    }

    private fun <T> list(items: Collection<T>, brackets: String, to: StringBuilder, each: (T) -> Unit) {
        to.append(brackets[0])
        items.forEachIndexed { i, item ->
            if (i > 0) to.append(", ")
            each(item)
        }
        to.append(brackets[1])
    }

    private const val ESCAPED = "\"\\\n\r\t\b\u000c"
    private const val ESCAPES = "\"\\nrtbf"

    private fun quote(text: String, to: StringBuilder) {
        to.append('"')
        for (c in text) {
            val escape = ESCAPED.indexOf(c)
            when {
                escape >= 0 -> to.append('\\').append(ESCAPES[escape])
                c in ' '..'~' -> to.append(c)
                else -> to.append("\\u").append(c.code.toString(16).padStart(4, '0'))
            }
        }
        to.append('"')
    }

    private class Parser(private val text: String) {
        private var at = 0

        fun whole(): Any? = value(0).also { if (next() != null) refuse() }

        /** The next character that is no space, not yet taken; null at the end. */
        private fun next(): Char? {
            while (at < text.length && text[at] in " \t\n\r") at++
            return text.getOrNull(at)
        }

        private fun refuse(): Nothing = throw IllegalArgumentException("it is no JSON at character $at")

        private fun take(expected: String) {
            if (!text.startsWith(expected, at)) refuse()
            at += expected.length
        }

        private fun value(depth: Int): Any? {
            require(depth <= DEEPEST) { "it nests more than $DEEPEST levels" }
            return when (next()) {
                '{' -> members(depth)
                '[' -> mutableListOf<Any?>().also { list -> items(']') { list += value(depth + 1) } }
                '"' -> string()
                't' -> true.also { take("true") }
                'f' -> false.also { take("false") }
                'n' -> null.also { take("null") }
                else -> number()
            }
        }

        private fun members(depth: Int): Map<String, Any?> {
            val members = HashMap<String, Any?>()
            items('}') {
                if (next() != '"') refuse()
                val key = string()
                next()
                take(":")
                members[key] = value(depth + 1)
            }
            return members
        }

        private fun items(end: Char, each: () -> Unit) {
            at++
            if (next() != end) {
                each()
                while (next() == ',') {
                    at++
                    each()
                }
            }
            if (next() != end) refuse()
            at++
        }

        private fun string(): String {
            val said = StringBuilder()
            at++
            while (true) {
                when (val c = text.getOrNull(at++)) {
                    null, in '\u0000'..'\u001f' -> refuse()
                    '"' -> return said.toString()
                    '\\' -> said.append(escape())
                    else -> said.append(c)
                }
            }
        }

        private fun escape(): Char = when (val c = text.getOrNull(at++)) {
            null -> refuse()
            '/' -> c
            'u' -> {
                val digits = text.substring(at, minOf(at + 4, text.length))
                if (digits.length < 4 || !digits.all { it in '0'..'9' || it in 'a'..'f' || it in 'A'..'F' }) refuse()
                at += 4
                digits.toInt(16).toChar()
            }
            else -> ESCAPED[ESCAPES.indexOf(c).also { if (it < 0) refuse() }]
        }

        private fun number(): Number {
            var end = at
            while (end < text.length && text[end] in "+-.eE0123456789") end++
            val spelling = text.substring(at, end)
            if (!NUMBER.matches(spelling)) refuse()
            at = end
            return Number(spelling)
        }
    }
}
