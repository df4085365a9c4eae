package litenmt.app

import android.app.Application
import android.content.ComponentCallbacks2
import android.os.Handler
import java.io.File
import litenmt.app.state.Models
import litenmt.app.state.Session

/** The one session of all screens, and the model that came with the app. */
class App : Application() {
    lateinit var settings: Settings
        private set
    lateinit var session: Session
        private set

    override fun onCreate() {
        super.onCreate()
        settings = Settings(getSharedPreferences("settings", MODE_PRIVATE))
        val handler = Handler(mainLooper)
        session = Session(Models(File(filesDir, "models"))) { handler.post(it) }
        val version = packageManager.getPackageInfo(packageName, 0).lastUpdateTime
        if (settings.installed != version) {
            session.run({ models.install(bundle()) }) { if (it.isSuccess) settings.installed = version }
        }
    }

    private fun bundle() = assets.list(BUNDLE).orEmpty().associateWith { name -> { assets.open("$BUNDLE/$name") } }

    override fun onTrimMemory(level: Int) {
        super.onTrimMemory(level)
        if (level != ComponentCallbacks2.TRIM_MEMORY_UI_HIDDEN) session.release()
    }

    private companion object {
        const val BUNDLE = "bundle"
    }
}
