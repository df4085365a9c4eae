package litenmt.translator

import java.io.File

/** What tests/android/test_translator.py has made: bundles, and what Python's runtime says of them. */
internal object Fixtures {
    val folder = File(requireNotNull(System.getProperty("litenmt.fixtures")) { "-Dlitenmt.fixtures names no folder" })

    fun file(name: String): File = folder.resolve(name)

    fun json(name: String): Map<*, *> = Json.parse(file(name).readText()) as Map<*, *>
}

internal fun Map<*, *>.text(key: String): String = get(key) as String

internal fun Map<*, *>.list(key: String): List<Map<*, *>> = (get(key) as List<*>).map { it as Map<*, *> }

internal fun Map<*, *>.ints(key: String): List<Int> = (get(key) as List<*>).map { (it as Number).spelling.toInt() }
