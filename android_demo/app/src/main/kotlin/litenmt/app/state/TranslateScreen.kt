package litenmt.app.state

import java.util.concurrent.atomic.AtomicReference
import litenmt.translator.Translation

/** What the translate screen shows and does; to be used on the main thread. */
class TranslateScreen(private val session: Session) {
    enum class Phase { IDLE, WORKING, DONE, FAILED }

    /**
     * @property text the translation so far.
     * @property times of a whole translation.
     */
    data class State(
        val phase: Phase = Phase.IDLE,
        val text: String = "",
        val times: Translation? = null,
        val problem: Throwable? = null,
    )

    var state = State()
        private set

    /** Told of each new state; null while nobody looks. */
    var listener: ((State) -> Unit)? = null

    @Volatile private var turn = 0 // of the translation that is shown; an earlier one has been cancelled

    fun translate(text: String, choice: Choice) {
        val mine = ++turn
        show(State(Phase.WORKING))
        val latest = AtomicReference<String?>() // not yet shown: the main thread may be the slower one
        session.run({
            val translator = translator(choice)
            val beam = if (choice.beam > 0) choice.beam else translator.bundle.manifest.beam
            translator.translate(text, beam, { mine != turn }) { partial ->
                if (latest.getAndSet(partial) == null) {
                    tell {
                        val text = latest.getAndSet(null)
                        if (mine == turn) show(State(Phase.WORKING, text.orEmpty()))
                    }
                }
            }
        }) { outcome ->
            if (mine == turn) {
                show(
                    outcome.fold(
                        { State(Phase.DONE, it.text, it) },
                        { State(Phase.FAILED, problem = it) },
                    ),
                )
            }
        }
    }

    /** Stop; what has been said stays. */
    fun cancel() {
        turn++
        show(state.copy(phase = if (state.text.isEmpty()) Phase.IDLE else Phase.DONE))
    }

    fun clear() {
        turn++
        show(State())
    }

    /** Show a translation of before. */
    fun restore(text: String) = show(if (text.isEmpty()) State() else State(Phase.DONE, text))

    private fun show(new: State) {
        state = new
        listener?.invoke(new)
    }
}
