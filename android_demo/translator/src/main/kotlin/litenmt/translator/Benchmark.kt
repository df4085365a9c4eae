package litenmt.translator

/** Of several measurements. */
class Spread(val median: Double, val least: Double, val most: Double)

/**
 * How fast a bundle is on this device.
 *
 * @property load milliseconds from the verified files to a model that can translate.
 * @property encode milliseconds from a sentence's tokens to the search's first step; null where the bundle does not tell.
 * @property token milliseconds per token of the search after that.
 * @property sentencesPerSecond one after the other.
 * @property tokens of the translations of all sentences, once.
 */
class Benchmark private constructor(
    val manifest: Manifest,
    val threads: Int,
    val beam: Int,
    val sentences: Int,
    val rounds: Int,
    val load: Spread,
    val encode: Spread?,
    val token: Spread,
    val sentencesPerSecond: Spread,
    val tokens: Int,
) {
    /** All of it as JSON; [more] is what else is known, as the device and its memory: texts, numbers, maps, lists. */
    fun toJson(more: Map<String, Any?> = emptyMap()): String = Json.write(
        mapOf(
            "languages" to mapOf("source" to manifest.source, "target" to manifest.target),
            "description" to manifest.description,
            "precision" to manifest.precision,
            "bytes" to manifest.bytes,
            "mult_adds" to mapOf("paper" to manifest.multAdds.paper, "full" to manifest.multAdds.full),
            "threads" to threads,
            "beam" to beam,
            "sentences" to sentences,
            "rounds" to rounds,
            "tokens" to tokens,
            "load_ms" to said(load),
            "encode_ms" to encode?.let(::said),
            "ms_per_token" to said(token),
            "sentences_per_second" to said(sentencesPerSecond),
        ) + more,
    )

    private fun said(spread: Spread) =
        mapOf("median" to spread.median, "least" to spread.least, "most" to spread.most)

    companion object {
        /**
         * Load the bundle anew in each round and translate all sentences with it; one round before is not counted.
         *
         * @param cancelled asked at each step.
         * @param onProgress is told what part is done, 0 to 1.
         * @return null if it was cancelled.
         * @throws BundleException as [Translator].
         */
        fun run(
            bundle: Bundle,
            sentences: List<String>,
            threads: Int,
            beam: Int = bundle.manifest.beam,
            rounds: Int = 3,
            cancelled: () -> Boolean = { false },
            onProgress: (Double) -> Unit = {},
        ): Benchmark? {
            require(rounds > 0 && sentences.isNotEmpty()) { "there is nothing to measure: $rounds rounds, ${sentences.size} sentences." }
            val load = mutableListOf<Double>()
            val speed = mutableListOf<Double>()
            val found = mutableListOf<Translation>()
            for (round in 0..rounds) {
                Translator(bundle, threads).use { translator ->
                    val start = System.nanoTime()
                    val translations = sentences.mapIndexed { i, sentence ->
                        onProgress((round * sentences.size + i) / ((rounds + 1.0) * sentences.size))
                        translator.translate(sentence, beam, cancelled) { }.also { if (it.cancelled) return null }
                    }
                    if (round > 0) {
                        load += translator.loadMillis
                        speed += sentences.size / (millisSince(start) / 1000)
                        found += translations
                    }
                }
            }
            onProgress(1.0)
            val encode = found.map(Translation::encodeMillis).filterNot(Double::isNaN)
            return Benchmark(
                bundle.manifest,
                threads,
                beam,
                sentences.size,
                rounds,
                spread(load),
                encode.takeIf { it.isNotEmpty() }?.let(::spread),
                spread(found.map(Translation::millisPerToken)),
                spread(speed),
                found.sumOf { it.tokens.size } / rounds,
            )
        }

        private fun spread(values: List<Double>): Spread {
            val sorted = values.sorted()
            val middle = (sorted[(sorted.size - 1) / 2] + sorted[sorted.size / 2]) / 2
            return Spread(middle, sorted.first(), sorted.last())
        }
    }
}
