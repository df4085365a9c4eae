package litenmt.app

import android.content.Intent
import android.net.Uri
import android.os.Build
import android.os.Bundle
import android.os.Debug
import android.text.format.Formatter
import android.util.Log
import android.view.View
import android.view.ViewGroup
import android.widget.ProgressBar
import android.widget.TextView
import litenmt.app.state.Samples
import litenmt.translator.Benchmark

/**
 * How fast the chosen model is on this device.
 *
 * `adb shell am start -n litenmt.app/.BenchmarkActivity --ez run true` runs it and writes the JSON to the log, under the
 * tag `lite-nmt`.
 */
class BenchmarkActivity : Screen() {
    private var json: String? = null
    @Volatile private var gone = false

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        show(R.layout.benchmark)
        findViewById<TextView>(R.id.text).text = getString(R.string.benchmark_text, ROUNDS)
        findViewById<View>(R.id.run).setOnClickListener { measure() }
        findViewById<View>(R.id.save).setOnClickListener {
            val create = Intent(Intent.ACTION_CREATE_DOCUMENT).addCategory(Intent.CATEGORY_OPENABLE)
            startActivityForResult(create.setType("application/json").putExtra(Intent.EXTRA_TITLE, "lite-nmt.json"), SAVE)
        }
        json = state?.getString(JSON)
        findViewById<View>(R.id.save).visibility = visible(json != null)
        if (state == null && intent.getBooleanExtra("run", false)) measure()
    }

    private fun measure() {
        val choice = app.settings.choice
        busy(true)
        app.session.release() // it would be measured too
        app.session.run({
            val bundle = models.open(choice.model)
            val threads = choice.threads.takeIf { it > 0 } ?: minOf(Runtime.getRuntime().availableProcessors(), 4)
            val beam = choice.beam.takeIf { it > 0 } ?: bundle.manifest.beam
            var memory = 0L
            val found = Benchmark.run(bundle, Samples.of(bundle.manifest.source), threads, beam, ROUNDS, { gone }) { part ->
                if (part > WARM && memory == 0L) memory = Debug.getPss()
                tell { findViewById<ProgressBar>(R.id.progress).progress = (100 * part).toInt() }
            }
            found?.let { it to memory }
        }) { outcome ->
            busy(false)
            tell(outcome.exceptionOrNull())
            outcome.getOrNull()?.let { (found, memory) -> show(found, memory) }
        }
    }

    private fun busy(yes: Boolean) {
        findViewById<View>(R.id.run).isEnabled = !yes
        findViewById<View>(R.id.progress).visibility = if (yes) View.VISIBLE else View.INVISIBLE
    }

    /** @param memory in KiB. */
    private fun show(found: Benchmark, memory: Long) {
        val rows = findViewById<ViewGroup>(R.id.rows)
        rows.removeAllViews()
        addRow(rows, R.string.load, millis(found.load.median))
        found.encode?.let { addRow(rows, R.string.encode, millis(it.median)) }
        addRow(rows, R.string.token, millis(found.token.median))
        addRow(rows, R.string.speed, getString(R.string.per_second, found.sentencesPerSecond.median))
        addRow(rows, R.string.memory, Formatter.formatShortFileSize(this, memory * 1024))
        rows.visibility = View.VISIBLE
        findViewById<View>(R.id.save).visibility = View.VISIBLE
        val text = found.toJson(
            mapOf(
                "pss_kib" to memory,
                "device" to "${Build.MANUFACTURER} ${Build.MODEL}",
                "android" to Build.VERSION.RELEASE,
                "cores" to Runtime.getRuntime().availableProcessors(),
            ),
        )
        json = text
        Log.i("lite-nmt", text)
    }

    private fun millis(value: Double) = getString(R.string.milliseconds, value)

    @Deprecated("Deprecated in Java")
    override fun onActivityResult(request: Int, result: Int, data: Intent?) {
        val document = data?.data
        val text = json
        if (request == SAVE && result == RESULT_OK && document != null && text != null) save(document, text)
    }

    private fun save(document: Uri, text: String) {
        val resolver = contentResolver
        app.session.run({
            checkNotNull(resolver.openOutputStream(document)) { "the document cannot be written." }
                .use { it.write(text.toByteArray()) }
        }) { tell(it.exceptionOrNull()) }
    }

    /** The process may end while the user chooses where to save. */
    override fun onSaveInstanceState(state: Bundle) {
        super.onSaveInstanceState(state)
        state.putString(JSON, json)
    }

    override fun onDestroy() {
        gone = true
        super.onDestroy()
    }

    private companion object {
        const val ROUNDS = 3
        const val WARM = 0.7 / (ROUNDS + 1) // near the end of the round that is not counted, the model being loaded
        const val SAVE = 1
        const val JSON = "json"
    }
}
