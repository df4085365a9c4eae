package litenmt.translator

import java.nio.ByteBuffer

/** A part of a protobuf message. It is read by index alone, so that threads may share the bytes. */
internal class Message(private val bytes: ByteBuffer, private val from: Int = 0, private val to: Int = bytes.limit()) {

    /** @property number what is said where [content] is null: a number, or the bits of a float. */
    class Field(val id: Int, val number: Long, val content: Message?)

    /** @throws IllegalArgumentException the message is not whole. */
    fun fields(each: (Field) -> Unit) {
        var at = from
        fun byte(): Int {
            require(at < to) { "it ends too early" }
            return bytes.get(at++).toInt() and 255
        }
        fun number(): Long {
            var value = 0L
            for (shift in 0 until 70 step 7) {
                val byte = byte()
                if (shift < 64) value = value or ((byte and 127).toLong() shl shift)
                if (byte < 128) return value
            }
            throw IllegalArgumentException("it holds a number without end")
        }
        fun fixed(size: Int): Long {
            var value = 0L
            for (i in 0 until size) value = value or (byte().toLong() shl (8 * i))
            return value
        }
        while (at < to) {
            val tag = number()
            val id = (tag ushr 3 and 0x1fffffff).toInt()
            when ((tag and 7).toInt()) {
                0 -> each(Field(id, number(), null))
                1 -> each(Field(id, fixed(8), null))
                5 -> each(Field(id, fixed(4), null))
                2 -> {
                    val size = number()
                    require(size in 0..(to - at).toLong()) { "it ends too early" }
                    each(Field(id, 0, Message(bytes, at, at + size.toInt())))
                    at += size.toInt()
                }
                else -> throw IllegalArgumentException("it holds what no message may")
            }
        }
    }

    fun toByteArray(): ByteArray = ByteArray(to - from) { bytes.get(from + it) }

    /** Its bytes as text. */
    fun text(): String = String(toByteArray(), Charsets.UTF_8)
}
