package litenmt.translator

import org.junit.Assert.assertEquals
import org.junit.Test

/** Held against SentencePiece's own answers, which tests/android/test_translator.py writes down. */
class SentencePieceTest {
    @Test
    fun `text becomes the library's tokens`() = eachModel { name, model, said ->
        for (case in said.list("encoded")) {
            val text = case.text("text")
            assertEquals("$name: ${Json.write(text)}", case.ints("ids"), model.encode(text).toList())
        }
    }

    @Test
    fun `tokens become the library's text`() = eachModel { name, model, said ->
        for (case in said.list("decoded")) {
            assertEquals("$name: ${case.ints("ids")}", case.text("text"), model.decode(case.ints("ids")))
        }
    }

    @Test
    fun `half a character is not shown`() = eachModel { _, model, _ ->
        val start = model.encode("ab").toList()
        val bytes = "😀".toByteArray().map { FIRST_BYTE + (it.toInt() and 255) }
        if (model.piece(FIRST_BYTE) != "<0x00>") return@eachModel // this one has no bytes
        for (known in 0..4) {
            val tokens = start + bytes.take(known)
            assertEquals(if (known == 4) tokens.size else start.size, model.whole(tokens))
        }
        assertEquals(0, model.whole(emptyList()))
        assertEquals(4, model.whole(bytes.takeLast(1) + bytes.takeLast(3))) // no character begins here
    }

    private fun eachModel(check: (String, SentencePiece, Map<*, *>) -> Unit) {
        for (said in Fixtures.json("tokens.json").list("models")) {
            val name = said.text("file")
            check(name, SentencePiece(Fixtures.file(name).readBytes()), said)
        }
    }

    private companion object {
        const val FIRST_BYTE = 4
    }
}
