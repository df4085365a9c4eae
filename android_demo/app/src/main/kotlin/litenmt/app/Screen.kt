package litenmt.app

import android.app.Activity
import android.content.Context
import android.os.Build
import android.view.MenuItem
import android.view.View
import android.view.ViewGroup
import android.widget.TextView
import java.util.Locale
import litenmt.app.state.NoModel
import litenmt.app.state.NoRoom
import litenmt.translator.Manifest

/** What all screens share. */
abstract class Screen : Activity() {
    protected val app get() = application as App

    /** Show a layout that holds a toolbar; its arrow leads up, where there is an up. */
    protected fun show(layout: Int) {
        setContentView(layout)
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.R) {
            findViewById<ViewGroup>(android.R.id.content).getChildAt(0).setOnApplyWindowInsetsListener(Insets)
        }
        setActionBar(findViewById(R.id.toolbar))
        actionBar?.setDisplayHomeAsUpEnabled(parentActivityIntent != null)
    }

    override fun onOptionsItemSelected(item: MenuItem): Boolean {
        if (item.itemId != android.R.id.home) return super.onOptionsItemSelected(item)
        finish()
        return true
    }

    /** Say what went wrong, or nothing if nothing did. */
    protected fun tell(problem: Throwable?) {
        val view = findViewById<TextView>(R.id.problem)
        view.text = problem?.let(::sentence)
        view.visibility = visible(problem != null)
    }

    private fun sentence(problem: Throwable): String = when (problem) {
        is NoModel -> getString(R.string.no_model)
        is NoRoom -> getString(R.string.no_room)
        is OutOfMemoryError -> getString(R.string.no_memory)
        else -> getString(R.string.failed, problem.message ?: problem.toString())
    }
}

/** A language's name in the user's; the code itself where it is none. */
fun languageName(code: String): String = Locale.forLanguageTag(code).displayLanguage.ifEmpty { code }

fun Context.pair(manifest: Manifest): String =
    getString(R.string.pair, languageName(manifest.source), languageName(manifest.target))

/** A label with its value, read out as one; one above the other where letters are large. */
fun Activity.addRow(to: ViewGroup, label: Int, value: String) {
    val large = resources.configuration.fontScale > LARGE
    val row = layoutInflater.inflate(if (large) R.layout.row_large else R.layout.row, to, false)
    row.findViewById<TextView>(R.id.label).setText(label)
    row.findViewById<TextView>(R.id.value).text = value
    row.contentDescription = "${getString(label)}: $value"
    to.addView(row)
}

private const val LARGE = 1.3

fun visible(yes: Boolean): Int = if (yes) View.VISIBLE else View.GONE
