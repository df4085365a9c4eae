package litenmt.translator

import java.nio.ByteBuffer
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

class ConfineTest {
    private fun field(id: Int, content: ByteArray): ByteArray {
        val tag = id shl 3 or 2
        val head = if (tag < 128) byteArrayOf(tag.toByte()) else byteArrayOf((tag and 127 or 128).toByte(), (tag shr 7).toByte())
        check(content.size < 128)
        return head + content.size.toByte() + content
    }

    private fun field(id: Int, text: String) = field(id, text.toByteArray())

    private fun located(where: String) = field(13, field(1, "location") + field(2, where))

    private fun refusal(graph: ByteArray): String =
        assertThrows(BundleException::class.java) { confine(Message(ByteBuffer.wrap(graph)), "g") }.message!!

    @Test
    fun `the bundle's own weights are fine`() {
        confine(Message(ByteBuffer.wrap(field(7, field(5, located(WEIGHTS))))), "g")
        confine(Message(ByteBuffer.wrap(field(7, field(5, field(13, field(1, "offset") + field(2, "64")))))), "g")
    }

    @Test
    fun `other files are not, wherever they hide`() {
        val tensor = located("/etc/passwd")
        val graph = field(5, tensor)
        val places = listOf(
            field(7, graph),
            field(7, field(1, field(5, graph))), // a node's constant
            field(7, field(1, field(5, field(10, tensor)))),
            field(7, field(1, field(5, field(6, graph)))), // a loop's body
            field(7, field(1, field(5, field(11, graph)))),
            field(7, field(1, field(5, field(22, field(1, tensor))))),
            field(7, field(15, field(2, tensor))),
            field(25, field(7, field(5, graph))), // a function
            field(20, field(1, graph)),
            field(7, field(5, field(13, field(1, "location") + field(2, WEIGHTS) + field(2, "../x")))), // the last one counts
            field(7, field(5, field(13, field(1, "location")))),
        )
        for (place in places) assertTrue("from outside its bundle" in refusal(place))
    }

    @Test
    fun `a graph that is not whole is refused`() {
        val content = field(7, field(5, located(WEIGHTS)))
        for (cut in 1 until content.size) assertTrue("no whole ONNX graph" in refusal(content.copyOf(cut)))
        for (odd in listOf("\u000b", "\u0008", "\u000d\u0000")) assertTrue("no whole ONNX graph" in refusal(odd.toByteArray()))
        assertTrue("no whole ONNX graph" in refusal(ByteArray(12) { -1 }))
    }
}
