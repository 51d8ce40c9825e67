package headgate.guard;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.UserDefinedType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Product;

/**
 * Visits all that a plan holds, not only its children: every node is a scala.Product, and a table, a query or a function may
 * hide in any of its elements. A class that no list names is refused. Kept in a queue of its own: deep statements use no stack.
 */
final class Walk {

  /** What a statement is made of: as parsed, before resolution (parsed and resolved parts may mix), after it. */
  enum Stage {
    PARSED,
    EARLY,
    RESOLVED;

    boolean allows(String plan) {
      return (this != RESOLVED && Lists.PARSED.contains(plan)) || (this != PARSED && Lists.RESOLVED.contains(plan));
    }
  }

  private record Visit(Object value, Stage stage) {}

  private static final Logger LOG = LoggerFactory.getLogger(Walk.class);
  private static final String UNKNOWN =
      "this kind of statement; use SELECT, INSERT, MERGE, UPDATE, DELETE, CREATE TABLE or ALTER TABLE";
  private static final Set<Class<?>> PLAIN =
      Set.of(
          String.class, Boolean.class, Byte.class, Short.class, Integer.class, Long.class, Float.class, Double.class,
          Character.class, java.math.BigDecimal.class, java.math.BigInteger.class, scala.runtime.BoxedUnit.class,
          scala.math.BigDecimal.class, scala.math.BigInt.class);

  private final Deque<Visit> waiting = new ArrayDeque<>();
  private final Checks checks;
  private Stage stage;

  Walk(Setup setup) {
    this.checks = new Checks(this, setup);
  }

  void check(Object root, Stage first) {
    push(root, first);
    while (!waiting.isEmpty()) {
      Visit next = waiting.pop();
      stage = next.stage();
      visit(next.value());
    }
  }

  Stage stage() {
    return stage;
  }

  /** Look at this later, in the stage of what is being visited. */
  void push(Object value) {
    push(value, stage);
  }

  void push(Object value, Stage at) {
    if (value != null && !PLAIN.contains(value.getClass())) waiting.push(new Visit(value, at));
  }

  private void visit(Object value) {
    if (value instanceof LogicalPlan plan) plan(plan);
    else if (value instanceof Expression expression) expression(expression);
    else if (!spread(value)) other(value);
  }

  private void plan(LogicalPlan plan) {
    String name = plan.getClass().getName();
    if (!stage.allows(name) && !isOfLoop(name)) {
      log(name);
      throw Refused.because(Lists.WORDS.getOrDefault(name, UNKNOWN));
    }
    if (checks.plan(plan)) elements(plan);
  }

  /** Whether it belongs to a round of a recursive query. No parsed statement holds such a class. */
  private boolean isOfLoop(String name) {
    return stage != Stage.PARSED && Lists.LOOPS.contains(name) && Loops.isRunning();
  }

  private void expression(Expression expression) {
    String name = expression.getClass().getName();
    if (!Lists.EXPRESSIONS.contains(name)) {
      log(name);
      throw new Refused("a kind of expression", "use built-in functions that the reference lists, and write names themselves");
    }
    if (checks.expression(expression)) elements((Product) expression);
  }

  private void elements(Product node) {
    node.productIterator().foreach(element -> {
      push(element);
      return null;
    });
  }

  /** Collections give what they hold; they come before functions, for Scala's are both. */
  private boolean spread(Object value) {
    if (value instanceof scala.collection.Iterable<?> many) {
      many.foreach(each -> {
        push(each);
        return null;
      });
    } else if (value instanceof Option<?> option) {
      if (option.isDefined()) push(option.get());
    } else if (value instanceof java.util.Collection<?> many) {
      many.forEach(this::push);
    } else if (value instanceof Object[] many) {
      for (Object each : many) push(each);
    } else if (value.getClass().getName().startsWith("scala.Tuple") && value instanceof Product tuple) {
      elements(tuple);
    } else {
      return false;
    }
    return true;
  }

  private void other(Object value) {
    String name = value.getClass().getName();
    boolean listed = value instanceof DataType ? !(value instanceof UserDefinedType) : Lists.VALUES.has(name);
    if (!listed || isFunction(value)) {
      log(name);
      throw new Refused("a part of this statement", "write names and values themselves");
    }
    if (value instanceof DataType) return;
    if (checks.value(value) && value instanceof Product held) elements(held);
  }

  /** For whoever keeps the lists: a class that nobody has looked at is worth a line. */
  private void log(String name) {
    if (Lists.REVIEWED.contains(name)) LOG.debug("refused {} in stage {}", name, stage);
    else LOG.warn("refused {} in stage {}: no list names it", name, stage);
  }

  private static boolean isFunction(Object value) {
    for (Class<?> type = value.getClass(); type != null; type = type.getSuperclass()) {
      for (Class<?> one : type.getInterfaces()) {
        if (one.getName().startsWith("scala.Function")) return true;
      }
    }
    return false;
  }
}
