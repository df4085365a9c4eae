package litenmt.app

import android.app.AlertDialog
import android.content.Intent
import android.os.Bundle
import android.text.format.Formatter
import android.view.View
import android.view.ViewGroup
import android.widget.AdapterView
import android.widget.ArrayAdapter
import android.widget.Spinner
import android.widget.TextView
import android.widget.Toast
import litenmt.app.state.Choice
import litenmt.translator.Counts
import litenmt.translator.Manifest

/** Each model's card, which one is used and how; models come in by the document picker. */
class ModelsActivity : Screen() {
    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        show(R.layout.models)
        val threads = 1..Runtime.getRuntime().availableProcessors()
        choose(R.id.threads, R.string.automatic, threads.toList(), { it.threads }) { copy(threads = it) }
        choose(R.id.beam, R.string.models_own, BEAMS, { it.beam }) { copy(beam = it) }
        findViewById<View>(R.id.import_bundle).setOnClickListener {
            val pick = Intent(Intent.ACTION_OPEN_DOCUMENT).addCategory(Intent.CATEGORY_OPENABLE).setType("*/*")
            startActivityForResult(pick, IMPORT)
        }
        list()
    }

    /** A spinner over numbers, with 0 before them. */
    private fun choose(view: Int, none: Int, numbers: List<Int>, get: (Choice) -> Int, set: Choice.(Int) -> Choice) {
        val spinner = findViewById<Spinner>(view)
        val values = listOf(0) + numbers
        val names = values.map { if (it == 0) getString(none) else it.toString() }
        spinner.adapter = ArrayAdapter(this, android.R.layout.simple_spinner_item, names).apply {
            setDropDownViewResource(android.R.layout.simple_spinner_dropdown_item)
        }
        spinner.setSelection(values.indexOf(get(app.settings.choice)).coerceAtLeast(0))
        spinner.onItemSelectedListener = object : AdapterView.OnItemSelectedListener {
            override fun onItemSelected(parent: AdapterView<*>, view: View?, position: Int, id: Long) {
                app.settings.choice = app.settings.choice.set(values[position])
            }

            override fun onNothingSelected(parent: AdapterView<*>) = Unit
        }
    }

    /** Show all models, damaged ones with what is wrong. */
    private fun list() {
        val choice = app.settings.choice
        app.session.manage({ names().map { name -> name to runCatching { open(name).manifest } } }) { found ->
            val all = found.getOrDefault(emptyList())
            val used = all.firstOrNull { it.first == choice.model } ?: all.firstOrNull()
            val list = findViewById<ViewGroup>(R.id.list)
            list.removeAllViews()
            for ((name, manifest) in all) list.addView(card(list, name, manifest, name == used?.first))
        }
    }

    private fun card(list: ViewGroup, name: String, found: Result<Manifest>, used: Boolean): View {
        val card = layoutInflater.inflate(R.layout.model, list, false)
        val manifest = found.getOrNull()
        card.findViewById<TextView>(R.id.pair).text = manifest?.let(::pair) ?: name
        card.findViewById<TextView>(R.id.description).text = manifest?.description ?: found.exceptionOrNull()?.message
        if (manifest != null) describe(card.findViewById(R.id.rows), manifest)
        card.findViewById<View>(R.id.in_use).visibility = visible(used)
        card.findViewById<View>(R.id.use).apply {
            visibility = visible(!used && manifest != null)
            setOnClickListener {
                app.settings.choice = app.settings.choice.copy(model = name)
                list()
            }
        }
        card.findViewById<View>(R.id.delete).setOnClickListener { delete(name) }
        return card
    }

    private fun describe(rows: ViewGroup, manifest: Manifest) {
        addRow(rows, R.string.precision, manifest.precision)
        addRow(rows, R.string.parameters, counted(manifest.parameters))
        addRow(rows, R.string.mult_adds, counted(manifest.multAdds))
        addRow(rows, R.string.size, Formatter.formatShortFileSize(this, manifest.bytes))
        val bleu = manifest.bleu?.let { getString(R.string.bleu_value, it.value, it.split, it.sentences) }
        addRow(rows, R.string.bleu, bleu ?: getString(R.string.not_measured))
    }

    private fun counted(counts: Counts) = getString(R.string.counted, millions(counts.paper), millions(counts.full))

    private fun millions(count: Long) = "%.1f\u00a0M".format(count / 1e6)

    private fun delete(name: String) {
        AlertDialog.Builder(this).setMessage(R.string.delete_question)
            .setPositiveButton(R.string.delete) { _, _ ->
                app.session.release()
                app.session.manage({ delete(name) }) { list() }
            }
            .setNegativeButton(android.R.string.cancel, null)
            .show()
    }

    @Deprecated("Deprecated in Java")
    override fun onActivityResult(request: Int, result: Int, data: Intent?) {
        val document = data?.data
        if (request != IMPORT || result != RESULT_OK || document == null) return
        tell(null)
        findViewById<View>(R.id.progress).visibility = View.VISIBLE
        val resolver = contentResolver
        app.session.manage({
            add(checkNotNull(resolver.openInputStream(document)) { "the document cannot be read." })
        }) { added ->
            findViewById<View>(R.id.progress).visibility = View.INVISIBLE
            tell(added.exceptionOrNull())
            added.onSuccess { Toast.makeText(this, getString(R.string.imported, it), Toast.LENGTH_LONG).show() }
            list()
        }
    }

    private companion object {
        const val IMPORT = 1
        val BEAMS = listOf(1, 2, 3, 4, 5, 6, 8)
    }
}
