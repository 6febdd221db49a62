package interop;

import java.util.Objects;
import java.util.concurrent.Callable;

/** What a scenario holds true. */
final class Check {
    private Check() {
    }

    static void that(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    static void equal(Object expected, Object found) {
        that(Objects.equals(expected, found), "expected " + expected + ", found " + found);
    }

    /** The exception of exactly this class that the call must end with. */
    static <E extends Exception> E raises(Class<E> kind, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (Exception error) {
            if (kind == error.getClass()) {
                return kind.cast(error);
            }
            throw error;
        }
        throw new AssertionError("expected " + kind.getSimpleName() + ", and the call was answered");
    }
}
