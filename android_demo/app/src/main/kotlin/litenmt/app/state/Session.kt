package litenmt.app.state

import java.util.concurrent.Executor
import java.util.concurrent.Executors
import litenmt.translator.Manifest
import litenmt.translator.Translator

/** What the user has set: a model's name, threads and hypotheses; null and 0 leave it to the app and the model. */
data class Choice(val model: String? = null, val threads: Int = 0, val beam: Int = 0)

/**
 * One thread that translates, with the one translator it keeps loaded, and one that looks after the models, so that these
 * are listed and imported while a long text is translated.
 *
 * @param main where outcomes are told.
 */
class Session(val models: Models, private val main: Executor) {
    private val worker = Executors.newSingleThreadExecutor { Thread(it, "translator") }
    private val keeper = Executors.newSingleThreadExecutor { Thread(it, "models") }
    private var translator: Translator? = null // the worker's
    private var loaded: Choice? = null

    /** Do [work] on the worker's thread, and [then] with what it gave or threw on the main one. */
    fun <T> run(work: Session.() -> T, then: (Result<T>) -> Unit) = worker.execute {
        val outcome = runCatching { work() }
        if (outcome.exceptionOrNull() is OutOfMemoryError) close()
        tell { then(outcome) }
    }

    /** Do [work] on the models' own thread, and [then] with what it gave or threw on the main one. */
    fun <T> manage(work: Models.() -> T, then: (Result<T>) -> Unit) = keeper.execute {
        val outcome = runCatching { models.work() }
        tell { then(outcome) }
    }

    /** Do something on the main thread. */
    fun tell(what: () -> Unit) = main.execute { what() }

    /** The translator for a choice; on the worker's thread only. */
    fun translator(choice: Choice): Translator {
        val wanted = choice.copy(model = models.nameOr(choice.model), beam = 0)
        translator?.takeIf { loaded == wanted }?.let { return it }
        close()
        val bundle = models.open(wanted.model)
        return (if (wanted.threads > 0) Translator(bundle, wanted.threads) else Translator(bundle)).also {
            translator = it
            loaded = wanted
        }
    }

    /** What a choice's model says of itself; on the worker's thread only. */
    fun manifest(choice: Choice): Manifest {
        val kept = translator?.takeIf { loaded?.model == models.nameOr(choice.model) }
        return (kept?.bundle ?: models.open(choice.model)).manifest
    }

    /** Give the model's memory back once what is under way is done; it is loaded again when it is needed. */
    fun release() = worker.execute { close() }

    private fun close() {
        translator?.close()
        translator = null
        loaded = null
    }
}
