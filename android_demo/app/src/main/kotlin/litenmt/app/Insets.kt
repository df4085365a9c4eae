package litenmt.app

import android.annotation.TargetApi
import android.os.Build
import android.view.View
import android.view.WindowInsets

/** Keeps a screen clear of bars, keyboard and camera, behind which Android draws it from 15 on. */
@TargetApi(Build.VERSION_CODES.R)
object Insets : View.OnApplyWindowInsetsListener {
    private val KINDS = WindowInsets.Type.systemBars() or WindowInsets.Type.displayCutout() or WindowInsets.Type.ime()

    override fun onApplyWindowInsets(view: View, insets: WindowInsets): WindowInsets {
        val room = insets.getInsets(KINDS)
        view.setPadding(room.left, room.top, room.right, room.bottom)
        return WindowInsets.CONSUMED
    }
}
