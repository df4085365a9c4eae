package litenmt.translator

import org.junit.Assert.assertEquals
import org.junit.Test

/** Held against lite_nmt.decode.segments and lite_nmt.data.lines. */
class SegmentsTest {
    @Test
    fun `pieces are cut as Python cuts them`() {
        for (case in Fixtures.json("segments.json").list("cases")) {
            val pieces = (case["pieces"] as List<*>).map { it as String }
            val limit = (case["limit"] as Number).spelling.toInt()
            assertEquals(case.ints("ends"), split(pieces, limit).map { it.last + 1 })
        }
    }

    @Test
    fun `lines are cleaned as Python cleans them`() {
        for (case in Fixtures.json("segments.json").list("lines")) assertEquals(case.text("clean"), clean(case.text("text")))
    }
}
