package headgate.guard;

import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.unsafe.types.UTF8String;

/** Schemas that functions are given as text. Spark parses them by itself, so no other check sees how deep they are. */
final class Schemas {

  /** Which argument is a schema. */
  private static final Map<String, Integer> ARGUMENT =
      Map.of("from_csv", 1, "from_json", 1, "try_variant_get", 2, "variant_get", 2);

  /** Functions that make a schema from an example. */
  private static final Set<String> MADE = Set.of("schema_of_csv", "schema_of_json");

  static void check(UnresolvedFunction call) {
    Integer place = ARGUMENT.get(name(call));
    if (place == null || call.arguments().size() <= place) return;
    Expression schema = call.arguments().apply(place);
    if (schema instanceof UnresolvedFunction made && MADE.contains(name(made))) return;
    if (!(schema instanceof Literal text)) throw new Refused("a schema that is computed", "write the schema as text");
    if (text.value() instanceof UTF8String value) Depth.of(value.toString());
  }

  private static String name(UnresolvedFunction call) {
    return call.nameParts().last().toLowerCase(Locale.ROOT);
  }

  private Schemas() {}
}
