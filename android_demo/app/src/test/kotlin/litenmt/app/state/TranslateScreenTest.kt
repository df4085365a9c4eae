package litenmt.app.state

import java.util.concurrent.CountDownLatch
import litenmt.app.state.TranslateScreen.Phase
import litenmt.app.state.TranslateScreen.State
import litenmt.translator.BundleException
import litenmt.translator.Translator
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotSame
import org.junit.Assert.assertSame
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class TranslateScreenTest {
    @get:Rule val folder = TemporaryFolder()
    private val main = Main()
    private val seen = mutableListOf<State>()

    private fun screen(session: Session) = TranslateScreen(session).apply { listener = seen::add }

    private fun screen(full: Boolean = true) = screen(Session(models(folder, full), main))

    private fun TranslateScreen.finish() = main.until { state.phase != Phase.WORKING }

    @Test fun `a translation is the translator's`() {
        val screen = screen()
        screen.translate("Ein Hund läuft.", ONE)
        assertEquals(State(Phase.WORKING), screen.state)
        screen.finish()
        assertEquals(Phase.DONE, screen.state.phase)
        assertEquals(screen.state.text, screen.state.times?.text)
        Translator(models(folder).open(null), 1).use {
            assertEquals(it.translate("Ein Hund läuft.").text, screen.state.text)
        }
        assertTrue(seen.dropLast(1).all { it.phase == Phase.WORKING })
    }

    @Test fun `cancelled, it stops and stays as it is`() {
        val screen = screen()
        screen.translate("Ein Hund läuft. ".repeat(200), ONE)
        screen.cancel()
        assertEquals(Phase.IDLE, screen.state.phase)
        val count = seen.size
        screen.translate("Ein Hund.", ONE)
        screen.finish()
        assertTrue(seen.drop(count).none { it.times?.cancelled == true })
    }

    @Test fun `a slow main thread is told the latest alone`() {
        val session = Session(models(folder), main)
        val screen = screen(session)
        screen.translate("Ein Hund läuft. ".repeat(200), ONE)
        val done = CountDownLatch(1)
        session.run({ done.countDown() }) { }
        done.await()
        assertTrue("${main.waiting}", main.waiting <= 3) // what was said, all of it, and the latch
        screen.finish()
        assertEquals(screen.state.text, seen.last { it.phase == Phase.WORKING }.text)
    }

    @Test fun `cleared and restored`() {
        val screen = screen()
        screen.restore("A dog.")
        assertEquals(State(Phase.DONE, "A dog."), screen.state)
        screen.clear()
        assertEquals(State(), screen.state)
        screen.restore("")
        assertEquals(State(), screen.state)
    }

    @Test fun `what fails is told, and the next works`() {
        val models = models(folder, full = false)
        val screen = screen(Session(models, main))
        screen.translate("Ein Hund.", ONE)
        screen.finish()
        assertEquals(NoModel::class.java, screen.state.problem?.javaClass)
        models.add(ZIP.inputStream())
        screen.translate("Ein Hund.", ONE)
        screen.finish()
        assertEquals(Phase.DONE, screen.state.phase)
        screen.translate("Ein Hund.", ONE.copy(beam = 1000))
        screen.finish()
        assertEquals(IllegalArgumentException::class.java, screen.state.problem?.javaClass)
    }

    @Test fun `a model is kept until memory is short or another is wanted`() {
        val session = Session(models(folder), main)
        fun <T> worked(work: Session.() -> T): T {
            var found: Result<T>? = null
            session.run(work) { found = it }
            main.until { found != null }
            return found!!.getOrThrow()
        }
        fun loaded(choice: Choice): Translator = worked { translator(choice) }
        assertEquals("de", worked { manifest(ONE) }.source)
        val first = loaded(ONE)
        assertSame(first, loaded(ONE.copy(beam = 3)))
        assertSame(first.bundle.manifest, worked { manifest(ONE) })
        session.release()
        val second = loaded(ONE)
        assertNotSame(first, second)
        assertNotSame(second, loaded(Choice(threads = 2)))
        assertTrue(runCatching { second.translate("x") }.exceptionOrNull() is IllegalStateException)
    }

    @Test fun `out of memory, what is loaded is given back`() {
        val session = Session(models(folder), main)
        var problem: Throwable? = null
        session.run<Unit>({ throw OutOfMemoryError() }) { problem = it.exceptionOrNull() }
        main.until { problem != null }
        assertTrue(problem is OutOfMemoryError)
        session.run<Unit>({ throw BundleException("damaged.") }) { problem = it.exceptionOrNull() }
        main.until { problem is BundleException }
    }

    private companion object {
        val ONE = Choice(threads = 1)
    }
}
