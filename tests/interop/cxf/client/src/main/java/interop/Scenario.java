package interop;

/** One behaviour of a broker, tried with CXF's own client classes; what it throws says how it failed. */
@FunctionalInterface
interface Scenario {
    void run(Stage stage) throws Exception;
}
