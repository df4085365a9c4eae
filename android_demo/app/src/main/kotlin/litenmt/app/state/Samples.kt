package litenmt.app.state

/** Sentences to measure with, by language; speed asks little of what they mean. */
object Samples {
    private val ENGLISH = listOf(
        "A man in a blue shirt is standing on a ladder and cleaning a window.",
        "Two young children are playing in the snow.",
        "Where is the next station?",
        "The woman who sold the red car yesterday has bought three books for her brother.",
        "If it rains tomorrow, we will stay at home and read.",
    )
    private val GERMAN = listOf(
        "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
        "Zwei kleine Kinder spielen im Schnee.",
        "Wo ist der nächste Bahnhof?",
        "Die Frau, die gestern das rote Auto verkauft hat, hat ihrem Bruder drei Bücher gekauft.",
        "Wenn es morgen regnet, bleiben wir zu Hause und lesen.",
    )

    fun of(language: String): List<String> = if (language == "de") GERMAN else ENGLISH
}
