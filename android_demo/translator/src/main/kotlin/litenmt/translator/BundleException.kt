package litenmt.translator

/** A bundle cannot be used. The message is one plain sentence for the user: what happened, the value, what to do. */
class BundleException(message: String, cause: Throwable? = null) : Exception(message, cause)
