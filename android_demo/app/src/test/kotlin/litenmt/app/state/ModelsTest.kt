package litenmt.app.state

import java.io.File
import java.io.IOException
import java.io.InputStream
import java.util.concurrent.CountDownLatch
import litenmt.translator.BundleException
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class ModelsTest {
    @get:Rule val folder = TemporaryFolder()

    @Test fun `a zip becomes a model, once more under another name`() {
        val models = models(folder)
        val second = models.add(ZIP.inputStream())
        val (first) = models.names()
        assertEquals("$first-2", second)
        assertEquals(listOf(first, second), models.names())
        assertEquals("de-en", languages(models.open(second)))
    }

    @Test fun `the one that came with the app is first, and replaced by a newer one`() {
        val models = models(folder)
        repeat(2) {
            models.install(FILES.associate { it.name to it::inputStream })
            assertEquals(Models.BUILT_IN, models.names().first())
            assertEquals(2, models.names().size)
        }
        assertEquals("de-en", languages(models.open(null)))
        assertEquals("de-en", languages(models.open("gone")))
    }

    @Test fun `what cannot be added changes nothing`() {
        val root = folder.newFolder()
        val models = Models(root)
        models.add(ZIP.inputStream())
        val before = root.walk().toList()
        val damaged = ZIP.clone().also { it[it.size / 2]++ }
        assertThrows(BundleException::class.java) { models.add(damaged.inputStream()) }
        assertThrows(BundleException::class.java) { models.add("no zip".byteInputStream()) }
        assertThrows(BundleException::class.java) { models.add(ByteArray(0).inputStream()) }
        assertThrows(IOException::class.java) { models.add(Broken()) }
        assertThrows(BundleException::class.java) { models.install(mapOf("manifest.json" to { "{}".byteInputStream() })) }
        assertEquals(before, root.walk().toList())
    }

    @Test fun `where the app's own cannot be installed, opening says why`() {
        val models = Models(folder.newFolder())
        assertThrows(IOException::class.java) { models.install(mapOf("manifest.json" to { Broken() })) }
        assertThrows(IOException::class.java) { models.open(null) }
    }

    @Test fun `models are listed and added while a text is translated`() {
        val main = Main()
        val session = Session(models(folder), main)
        val done = CountDownLatch(1)
        session.run({ done.await() }) { }
        var found = emptyList<String>()
        session.manage({ add(ZIP.inputStream()) }) { session.manage({ names() }) { all -> found = all.getOrThrow() } }
        main.until { found.size == 2 }
        done.countDown()
    }

    @Test fun `a deleted one is gone`() {
        val models = models(folder)
        models.delete(models.names().single())
        assertEquals(emptyList<String>(), models.names())
        assertThrows(NoModel::class.java) { models.open(null) }
    }

    @Test fun `a damaged one says so`() {
        val root = folder.newFolder()
        val models = Models(root)
        val name = models.add(ZIP.inputStream())
        File(root, "$name/source.spm").appendText("x")
        assertThrows(BundleException::class.java) { models.open(name) }
    }

    private class Broken : InputStream() {
        override fun read(): Int = throw IOException("the card was pulled.")
    }
}
