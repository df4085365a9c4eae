package litenmt.app

import android.content.SharedPreferences
import litenmt.app.state.Choice

/** What the user has chosen, kept. */
class Settings(private val kept: SharedPreferences) {
    var choice: Choice
        get() = Choice(kept.getString("model", null), kept.getInt("threads", 0), kept.getInt("beam", 0))
        set(new) = kept.edit().putString("model", new.model).putInt("threads", new.threads).putInt("beam", new.beam).apply()

    /** Which version of the app has put its model in place. */
    var installed: Long
        get() = kept.getLong("installed", 0)
        set(version) = kept.edit().putLong("installed", version).apply()
}
