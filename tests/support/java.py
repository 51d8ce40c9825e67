"""Java for tests, which end before it pays to optimise what they run: it compiles once, quickly."""

VARIABLE = "HEADGATE_SPARK__JAVA_OPTIONS"
QUICK = '["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]'
