package litenmt.translator

import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Test

class JsonTest {
    @Test
    fun `what is read is written as Python writes it`() {
        val text = """ { "b" : [ 1 , -2.50 , 1e-07 , true , null , "" ] , "a" : {} , "é" : "\"\\\/\b\f\n\r\té😀\u00E9\ud83d\u007f" } """
        assertEquals(
            """{"a": {}, "b": [1, -2.50, 1e-07, true, null, ""], "\u00e9": "\"\\/\b\f\n\r\t\u00e9\ud83d\ude00\u00e9\ud83d\u007f"}""",
            Json.write(Json.parse(text)),
        )
        assertEquals("""{"x": [1.5, 3]}""", Json.write(mapOf("x" to listOf(1.5, 3L))))
    }

    @Test
    fun `what is no JSON is refused`() {
        val none = listOf(
            "", " ", "{", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{1:2}", "nul", "01", "1.", "+1", "NaN", "1 2", "\"", "\"\\x\"",
            "\"\\u12\"", "\"\\u+123\"", "\"\n\"", "'a'", "[".repeat(1_000_000), "{\"a\":".repeat(100_000), "-", "1e", "\\",
        )
        for (text in none) assertThrows(text.take(9), IllegalArgumentException::class.java) { Json.parse(text) }
    }
}
