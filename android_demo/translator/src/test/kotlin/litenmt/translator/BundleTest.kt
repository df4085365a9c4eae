package litenmt.translator

import java.io.File
import java.util.zip.ZipEntry
import java.util.zip.ZipOutputStream
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Before
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

/** A bundle is whole, or refused in one plain sentence, and what was there before stays. */
class BundleTest {
    @get:Rule val scratch = TemporaryFolder()

    private val expected = Fixtures.json("expected.json").list("bundles").first()
    private val whole: Map<String, ByteArray> = Fixtures.file(expected.text("folder")).listFiles()!!.associate { it.name to it.readBytes() }
    private lateinit var models: File
    private lateinit var folder: File

    @Before
    fun before() {
        models = scratch.newFolder("models")
        folder = File(models, "mine")
        Bundle.unpack(zipped(whole), folder)
    }

    private fun zipped(files: Map<String, ByteArray>): File = scratch.newFile().also { zip ->
        ZipOutputStream(zip.outputStream()).use { output ->
            for ((name, content) in files) {
                output.putNextEntry(ZipEntry(name))
                output.write(content)
            }
        }
    }

    private fun contents() = folder.listFiles()!!.associate { it.name to sha256(it.readBytes()) }

    /** An import of this zip is refused, and changes nothing. */
    private fun refused(zip: File, room: (File) -> Long = { Long.MAX_VALUE }): String {
        val before = contents()
        val message = assertThrows(BundleException::class.java) { unpack(zip, folder, room) }.message!!
        assertEquals(before, contents())
        assertEquals(listOf("mine"), models.list()!!.toList())
        assertFalse(message, '\n' in message)
        return message
    }

    private fun refused(files: Map<String, ByteArray>): String = refused(zipped(files))

    /** The manifest, altered by someone who renewed its checksum. */
    @Suppress("UNCHECKED_CAST")
    private fun resealed(change: (MutableMap<String, Any?>) -> Unit): ByteArray {
        val said = mutable(Json.parse(String(whole.getValue(Manifest.NAME)))) as MutableMap<String, Any?>
        change(said)
        return Json.write(said + ("sha256" to sha256(Json.write(said - "sha256").toByteArray()))).toByteArray()
    }

    private fun mutable(value: Any?): Any? =
        if (value is Map<*, *>) value.entries.associateTo(HashMap<Any?, Any?>()) { it.key to mutable(it.value) } else value

    @Suppress("UNCHECKED_CAST")
    private fun MutableMap<String, Any?>.inner(vararg path: String) =
        path.fold(this) { inner, key -> inner[key] as MutableMap<String, Any?> }

    private fun ByteArray.replaced(old: String, new: String): ByteArray =
        String(this, Charsets.ISO_8859_1).replace(old, new).toByteArray(Charsets.ISO_8859_1)

    private fun altered(change: (MutableMap<String, Any?>) -> Unit) = whole + (Manifest.NAME to resealed(change))

    @Test
    fun `a whole one says what it is`() {
        val bundle = Bundle.open(folder)
        assertEquals(whole.mapValues { sha256(it.value) }, contents())
        assertEquals("de" to "en", bundle.manifest.source to bundle.manifest.target)
        assertEquals(whole.filterKeys { it != Manifest.NAME }.values.sumOf { it.size.toLong() }, bundle.manifest.bytes)
        assertTrue(bundle.manifest.multAdds.full > bundle.manifest.multAdds.paper)
        Translator(Bundle.unpack(zipped(whole), folder), 1).close() // over the old one
        Translator(Bundle.unpack(zipped(whole), File(models, "deeper/still")), 1).close()
    }

    @Test
    fun `damage is refused`() {
        for ((name, content) in whole) {
            for (cut in listOf(0, 1, content.size / 2, content.size - 1)) refused(whole + (name to content.copyOf(cut)))
            refused(whole + (name to content + 125))
            refused(whole - name)
            val flipped = content.clone().also { it[content.size / 3] = (it[content.size / 3].toInt() xor 4).toByte() }
            refused(whole + (name to flipped))
            File(folder, name).writeBytes(flipped)
            assertThrows(BundleException::class.java) { Bundle.open(folder) }
            File(folder, name).delete()
            assertThrows(BundleException::class.java) { Bundle.open(folder) }
            File(folder, name).writeBytes(content)
        }
        Bundle.open(folder)
        assertTrue("holds no manifest.json" in refused(whole.mapKeys { "bundle/${it.key}" }))
        assertTrue("is no bundle" in assertThrows(BundleException::class.java) { Bundle.open(File(models, "nowhere")) }.message!!)
    }

    @Test
    fun `what is no zip is refused`() {
        assertTrue("is no bundle" in refused(File(models, "nowhere.zip")))
        for (content in listOf("", "what is this", "PK\u0005\u0006" + "\u0000".repeat(18))) {
            assertTrue("is no bundle" in refused(scratch.newFile().also { it.writeText(content) }))
        }
        assertTrue("is no bundle" in refused(scratch.newFolder()))
        val zip = zipped(whole).readBytes()
        for (cut in zip.indices step zip.size / 9) refused(scratch.newFile().also { it.writeBytes(zip.copyOf(cut)) })
    }

    @Test
    fun `names that lead elsewhere are refused`() {
        val content = byteArrayOf(1)
        for (name in listOf("../x", "/etc/x", "a/b", "a\\b", "..", ".", "C:x", "x".repeat(300), ".hidden", "é", "")) {
            val said = altered { it.inner("files")[name] = mapOf("bytes" to 1, "sha256" to sha256(content)) }
            assertTrue("names a file outside its folder" in refused(said + if (name.isEmpty()) emptyMap() else mapOf(name to content)))
            if (name.isNotEmpty()) assertTrue("holds other files" in refused(whole + (name to content)))
        }
        assertFalse(File(models, "x").exists())
    }

    @Test
    fun `a manifest that lies is refused`() {
        val lies = listOf<(MutableMap<String, Any?>) -> Unit>(
            { it.remove("languages") },
            { it["languages"] = listOf("de", "en") },
            { it.inner("languages")["source"] = "../de" },
            { it.inner("languages")["target"] = ".en" },
            { it["precision"] = "int8/../../x" },
            { it.inner("files").keys.removeAll { name -> name.endsWith(".onnx") } },
            { it["format"] = "lite-nmt checkpoint" },
            { it["version"] = 2 },
            { it["version"] = null },
            { it["files"] = emptyList<Any>() },
            { it["bleu"] = 3 },
            { it.inner("config", "decode")["beam"] = 0 },
            { it.inner("config", "vocabulary")["max_length"] = "58" },
            { it.inner("config", "vocabulary")["joint"] = false },
            { it.inner("files").remove(SOURCE) },
            { it.inner("files")["more"] = 3 },
            { it.inner("files")[Manifest.NAME] = mapOf("bytes" to 1, "sha256" to "") },
            { it.inner("files", WEIGHTS)["bytes"] = 199 },
            { it.inner("files", WEIGHTS)["bytes"] = -5 },
            { it.inner("files", WEIGHTS)["bytes"] = "200" },
            { it.inner("files", WEIGHTS)["bytes"] = Number("1180591620717411303424") },
            { it.inner("files", WEIGHTS)["sha256"] = "0".repeat(64) },
        )
        for (lie in lies) refused(altered(lie))
        assertTrue("its task is another, summarize" in refused(altered { it.inner("config")["task"] = "summarize" }))
        assertTrue("version 2; this release reads version 1" in refused(altered { it["version"] = 2 }))
        val unsealed = String(whole.getValue(Manifest.NAME)).replace("\"beam\": ", "\"beam\": 1")
        assertTrue("is altered" in refused(whole + (Manifest.NAME to unsealed.toByteArray())))
    }

    @Test
    fun `a manifest that would exhaust memory or stack is refused`() {
        for (text in listOf("[".repeat(900_000), "{\"a\":".repeat(100_000), "null", "[]", "{}", "NaN", "\u00ff")) {
            refused(whole + (Manifest.NAME to text.toByteArray(Charsets.ISO_8859_1)))
        }
        val endless = whole + (Manifest.NAME to ByteArray(Manifest.LARGEST * 50) { 32 })
        assertTrue("is longer than" in refused(endless))
        File(folder, Manifest.NAME).writeBytes(endless.getValue(Manifest.NAME))
        assertTrue("bytes long" in assertThrows(BundleException::class.java) { Bundle.open(folder) }.message!!)
    }

    @Test
    fun `bombs are refused`() {
        val bomb = ByteArray(100_000_000)
        val listed = mapOf("bytes" to bomb.size, "sha256" to sha256(bomb))
        val small = whole.mapValues { (name, content) -> if (name == WEIGHTS) ByteArray(9) else content }
        val said = altered { it.inner("files")["bomb"] = mapOf("bytes" to (1L shl 40), "sha256" to "") }
        assertTrue("times its own size" in refused(said + ("bomb" to bomb)))
        assertTrue("is longer than" in refused(whole + (WEIGHTS to bomb)))
        // Of this one the zip's own directory lies too.
        val zip = zipped(small + (WEIGHTS to bomb) + (Manifest.NAME to resealed { it.inner("files")[WEIGHTS] = listed + ("bytes" to 200) }))
        val size = listOf(bomb.size, 200).map { size -> String(CharArray(4) { (size shr (8 * it) and 255).toChar() }) }
        zip.writeBytes(zip.readBytes().replaced(size[0], size[1]))
        refused(zip)
    }

    @Test
    fun `a member that is there twice is refused`() {
        val zip = zipped(whole + ("weights.bim" to whole.getValue(WEIGHTS)))
        zip.writeBytes(zip.readBytes().replaced("weights.bim", WEIGHTS))
        refused(zip)
    }

    @Test
    fun `no room is said, and leaves nothing behind`() {
        val said = refused(zipped(whole)) { 1000 }
        assertTrue(said, "and 1000 are free; make room and try again" in said)
    }

    @Test
    fun `a graph that wants a file of the phone's is not opened`() {
        val graph = whole.getValue(GREEDY).replaced(WEIGHTS, "weights.bim")
        val files = listOf(GREEDY, BEAM, BEGIN, ADVANCE).filter { it in whole }
        val said = altered { for (name in files) it.inner("files")[name] = mapOf("bytes" to graph.size, "sha256" to sha256(graph)) }
        val bundle = Bundle.unpack(zipped(said + files.associateWith { graph }), folder)
        val message = assertThrows(BundleException::class.java) { Translator(bundle, 1) }.message!!
        assertTrue("from outside its bundle" in message)
    }
}
