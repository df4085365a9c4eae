package litenmt.app

import android.content.ClipData
import android.content.ClipboardManager
import android.content.Intent
import android.os.Build
import android.os.Bundle
import android.view.Menu
import android.view.MenuItem
import android.view.View
import android.widget.Button
import android.widget.EditText
import android.widget.TextView
import android.widget.Toast
import litenmt.app.state.TranslateScreen
import litenmt.app.state.TranslateScreen.Phase

/** Type, paste or share a text; its translation streams in. */
class TranslateActivity : Screen() {
    private lateinit var screen: TranslateScreen
    private lateinit var source: EditText

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        try {
            intent.hasExtra(Intent.EXTRA_TEXT)
        } catch (error: RuntimeException) { // another app sent an object of a class of its own
            intent.replaceExtras(null as Bundle?)
        }
        show(R.layout.translate)
        source = findViewById(R.id.source)
        findViewById<View>(R.id.translate).setOnClickListener { if (working()) screen.cancel() else translate() }
        findViewById<View>(R.id.clear).setOnClickListener {
            source.setText("")
            screen.clear()
        }
        findViewById<View>(R.id.copy).setOnClickListener { copy() }
        findViewById<View>(R.id.share).setOnClickListener { share() }
        findViewById<View>(R.id.replace).setOnClickListener {
            setResult(RESULT_OK, Intent().putExtra(Intent.EXTRA_PROCESS_TEXT, screen.state.text))
            finish()
        }
        val kept = lastNonConfigurationInstance as TranslateScreen? // turned, and perhaps still translating
        screen = kept ?: TranslateScreen(app.session)
        screen.listener = ::show
        show(screen.state)
        if (state == null) receive()
    }

    override fun onResume() {
        super.onResume()
        val choice = app.settings.choice
        app.session.run({ manifest(choice) }) { found ->
            val manifest = found.getOrNull()
            title = manifest?.let(::pair) ?: getString(R.string.app_name)
            tell(found.exceptionOrNull() ?: screen.state.problem)
        }
    }

    /** A text from another app is translated at once. */
    private fun receive() {
        val text = intent.getCharSequenceExtra(Intent.EXTRA_PROCESS_TEXT)
            ?: intent.getCharSequenceExtra(Intent.EXTRA_TEXT)
            ?: return
        source.setText(text)
        translate()
    }

    private fun translate() = screen.translate(source.text.toString(), app.settings.choice)

    private fun working() = screen.state.phase == Phase.WORKING

    private fun show(state: TranslateScreen.State) {
        val working = state.phase == Phase.WORKING
        findViewById<Button>(R.id.translate).setText(if (working) R.string.cancel else R.string.translate)
        findViewById<View>(R.id.progress).visibility = if (working) View.VISIBLE else View.INVISIBLE
        findViewById<View>(R.id.card).visibility = visible(state.text.isNotEmpty())
        findViewById<TextView>(R.id.result).apply { // read out once, when it is whole
            accessibilityLiveRegion =
                if (working) View.ACCESSIBILITY_LIVE_REGION_NONE else View.ACCESSIBILITY_LIVE_REGION_POLITE
            text = state.text
        }
        val times = findViewById<TextView>(R.id.times)
        times.visibility = visible(state.times != null && !state.times.encodeMillis.isNaN())
        state.times?.let { times.text = getString(R.string.times, it.encodeMillis, it.millisPerToken) }
        findViewById<View>(R.id.replace).visibility = visible(!working && replaces())
        tell(state.problem)
    }

    /** Whether the app that the text comes from would take the translation in its place. */
    private fun replaces() = intent.action == Intent.ACTION_PROCESS_TEXT &&
        !intent.getBooleanExtra(Intent.EXTRA_PROCESS_TEXT_READONLY, false)

    private fun copy() {
        val clipboard = getSystemService(ClipboardManager::class.java)
        clipboard.setPrimaryClip(ClipData.newPlainText(getString(R.string.app_name), screen.state.text))
        if (Build.VERSION.SDK_INT < Build.VERSION_CODES.TIRAMISU) { // newer ones say so themselves
            Toast.makeText(this, R.string.copied, Toast.LENGTH_SHORT).show()
        }
    }

    private fun share() {
        val send = Intent(Intent.ACTION_SEND).setType("text/plain").putExtra(Intent.EXTRA_TEXT, screen.state.text)
        startActivity(Intent.createChooser(send, null))
    }

    override fun onCreateOptionsMenu(menu: Menu): Boolean {
        menuInflater.inflate(R.menu.translate, menu)
        return true
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        val screen = when (item.itemId) {
            R.id.models -> ModelsActivity::class.java
            R.id.benchmark -> BenchmarkActivity::class.java
            else -> return super.onOptionsItemSelected(item)
        }
        startActivity(Intent(this, screen))
        return true
    }

    @Deprecated("Deprecated in Java")
    override fun onRetainNonConfigurationInstance(): Any = screen

    /** The text that was typed is kept by its field; a translation too long for a saved state is made again. */
    override fun onSaveInstanceState(state: Bundle) {
        super.onSaveInstanceState(state)
        val long = screen.state.text.length > MOST_KEPT
        if (!long) state.putString(TRANSLATION, screen.state.text)
        state.putBoolean(WORKING, working() || long)
    }

    override fun onRestoreInstanceState(state: Bundle) {
        super.onRestoreInstanceState(state)
        if (lastNonConfigurationInstance != null) return
        if (state.getBoolean(WORKING)) translate() else screen.restore(state.getString(TRANSLATION, ""))
    }

    override fun onDestroy() {
        screen.listener = null
        if (isFinishing) screen.cancel()
        super.onDestroy()
    }

    private companion object {
        const val TRANSLATION = "translation"
        const val WORKING = "working"
        const val MOST_KEPT = 100_000 // as many characters as the field takes
    }
}
