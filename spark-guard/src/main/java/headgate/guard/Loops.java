package headgate.guard;

import java.lang.StackWalker.StackFrame;

/**
 * Recursive common table expressions run as a loop, for which Spark makes a plan of each round from the statement's own, checked
 * plan and the rows of the round before. These plans are checked as all others are, but may hold a few classes more.
 */
final class Loops {

  private static final String LOOP = "org.apache.spark.sql.execution.UnionLoopExec";

  /** Whether this thread runs such a loop. Looks through the stack: ask only if it matters. */
  static boolean isRunning() {
    return StackWalker.getInstance().walk(frames -> frames.map(StackFrame::getClassName).anyMatch(LOOP::equals));
  }

  private Loops() {}
}
