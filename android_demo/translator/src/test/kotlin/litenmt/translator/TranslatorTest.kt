package litenmt.translator

import java.util.concurrent.Callable
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** Held against the Python runtime's answers on the same bundles. */
class TranslatorTest {
    private val expected = Fixtures.json("expected.json").list("bundles")

    private fun bundle(said: Map<*, *>) = Bundle.open(Fixtures.file(said.text("folder")))

    private fun first() = Translator(bundle(expected.first()), threads = 1)

    private fun check(name: String, said: Map<*, *>, found: Translation) {
        assertEquals("$name: ${said.text("text")}", said.ints("tokens"), found.tokens)
        assertEquals(said.text("translation"), found.text)
        assertEquals((said["score"] as Number).spelling.toFloat(), found.score, 1e-4f)
        assertFalse(found.cancelled)
    }

    @Test
    fun `the Python runtime's tokens`() {
        for (said in expected) Translator(bundle(said), threads = 1).use { translator ->
            var others = 0
            for (case in said.list("cases")) {
                val beam = (case["beam"] as Number).spelling.toInt()
                val found = translator.translate(case.text("text"), beam)
                if (said["exact"] == true) check("${said.text("folder")}, beam $beam", case, found)
                else if (case.ints("tokens") != found.tokens) others++
            }
            assertTrue("$others differ", others <= said.list("cases").size / 20)
        }
    }

    @Test
    fun `step by step it is the same`() {
        for (said in expected) Translator(bundle(said), threads = 1).use { translator ->
            for (case in said.list("cases")) {
                val beam = (case["beam"] as Number).spelling.toInt()
                var last = ""
                val steps = translator.translate(case.text("text"), beam) { last = it }
                val once = translator.translate(case.text("text"), beam)
                assertEquals("$beam: ${case.text("text")}", once.tokens, steps.tokens)
                assertEquals(once.score, steps.score, 1e-4f)
                assertEquals(steps.text, last)
            }
        }
    }

    @Test
    fun `nothing becomes nothing, and what is odd becomes something`() = first().use { translator ->
        for (text in listOf("", "   ", "\n\t\u0000")) {
            val found = translator.translate(text)
            assertEquals("", found.text)
            assertEquals(emptyList<Int>(), found.tokens)
        }
        translator.translate("😀👨‍👩‍👧🇩🇪")
        translator.translate("\ud800 lone \udc00")
        assertTrue(translator.translate("Ein Hund läuft. ".repeat(625)).tokens.isNotEmpty()) // 10,000 characters
    }

    @Test
    fun `what is cancelled stops and says how far it came`() = first().use { translator ->
        val text = expected.first().list("cases").maxByOrNull { it.ints("tokens").size }!!.text("text")
        val streamed = AtomicInteger()
        val found = translator.translate(text, cancelled = { streamed.get() >= 3 }) { streamed.incrementAndGet() }
        assertTrue(found.cancelled)
        assertEquals(4, streamed.get()) // and once all that there is
        assertEquals(3, found.tokens.size)
        assertTrue(found.score.isNaN())
        val long = "Ein Hund läuft über die Wiese und ein Mann sitzt auf einer Bank. ".repeat(200)
        assertTrue(translator.translate(long, cancelled = { true }).cancelled)
        assertFalse(translator.translate(text, cancelled = { false }).cancelled)
        val failure = assertThrows(IllegalStateException::class.java) {
            translator.translate(long, cancelled = { error("the asker failed") })
        }
        assertEquals("the asker failed", failure.message)
    }

    @Test
    fun `several threads translate at once`() = first().use { translator ->
        val beam = translator.bundle.manifest.beam
        val cases = expected.first().list("cases").filter { (it["beam"] as Number).spelling == "$beam" }
        val pool = Executors.newFixedThreadPool(4)
        try {
            val jobs = (0 until 4).map { worker ->
                Callable {
                    for ((i, case) in cases.withIndex()) {
                        if ((i + worker) % 2 == 0) check("at once", case, translator.translate(case.text("text")))
                        else check("at once", case, translator.translate(case.text("text")) { })
                    }
                }
            }
            pool.invokeAll(jobs).forEach { it.get() }
        } finally {
            pool.shutdownNow()
        }
    }

    @Test
    fun `closing waits for what is under way, which stops`() {
        val translator = first()
        val pool = Executors.newSingleThreadExecutor()
        val started = java.util.concurrent.CountDownLatch(1)
        val job = pool.submit<Translation> { translator.translate("Ein Hund läuft. ".repeat(600)) { started.countDown() } }
        started.await()
        translator.close()
        assertTrue(job.get().cancelled)
        pool.shutdownNow()
        assertThrows(IllegalStateException::class.java) { translator.translate("Hund") }
        translator.close()
    }

    @Test
    fun `a beam beyond the vocabulary or below one is refused`() = first().use { translator ->
        for (beam in listOf(0, -1, 1_000_000)) {
            assertThrows(IllegalArgumentException::class.java) { translator.translate("Hund", beam) }
        }
        assertThrows(IllegalArgumentException::class.java) { Translator(translator.bundle, threads = -1) }
        Unit
    }

    @Test
    fun `a benchmark tells what it measured`() {
        val bundle = bundle(expected.first())
        var done = 0.0
        val found = Benchmark.run(bundle, listOf("Ein Hund läuft.", "Eine Frau sitzt."), 1, rounds = 2) { done = it }!!
        assertEquals(1.0, done, 0.0)
        for (spread in listOf(found.load, found.token, found.sentencesPerSecond)) {
            assertTrue(spread.least > 0 && spread.least <= spread.median && spread.median <= spread.most)
        }
        val said = Json.parse(found.toJson(mapOf("device" to "test"))) as Map<*, *>
        assertEquals("test", said["device"])
        assertEquals("2", (said["rounds"] as Number).spelling)
        assertEquals(null, Benchmark.run(bundle, listOf("Ein Hund."), 1, cancelled = { true }))
    }
}
