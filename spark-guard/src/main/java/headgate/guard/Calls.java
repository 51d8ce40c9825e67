package headgate.guard;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.catalyst.analysis.ResolvedProcedure;
import org.apache.spark.sql.catalyst.analysis.UnresolvedProcedure;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.plans.logical.Call;
import scala.collection.Iterator;

/** CALL runs while a statement is analysed: all of it is judged before. */
final class Calls {

  private static final String SYSTEM = NameChecks.CATALOG + ".system.";

  /** A listed procedure, by its full name, with literals for arguments and one of our tables. */
  static void parsed(Call call, NameChecks names) {
    if (!(call.procedure() instanceof UnresolvedProcedure procedure)) throw unknown();
    String name = String.join(".", NameChecks.list(procedure.nameParts()));
    if (!name.startsWith(SYSTEM) || !Lists.PROCEDURES.containsKey(name.substring(SYSTEM.length()))) throw unknown();
    List<String> known = Lists.PROCEDURES.get(name.substring(SYSTEM.length()));
    List<String> seen = new ArrayList<>();
    for (Iterator<Expression> each = call.args().iterator(); each.hasNext(); ) {
      Expression argument = each.next();
      String parameter;
      if (argument instanceof NamedArgumentExpression named) {
        parameter = named.key().toLowerCase(Locale.ROOT);
        argument = named.value();
      } else {
        parameter = seen.size() < known.size() ? known.get(seen.size()) : "";
      }
      if (!known.contains(parameter) || seen.contains(parameter)) {
        throw new Refused("an argument of this procedure", "its arguments are " + String.join(", ", known));
      }
      seen.add(parameter);
      argument(parameter, argument, names);
    }
  }

  /** The same once more on what was found under the name. */
  static void resolved(ResolvedProcedure procedure) {
    Tables.catalog(procedure.catalog());
    if (!Lists.PROCEDURES.containsKey(procedure.ident().name())) throw unknown();
  }

  private static void argument(String parameter, Expression value, NameChecks names) {
    if (!(value instanceof Literal literal)) {
      throw new Refused("a computed argument of a procedure", "write the value itself");
    }
    if (parameter.equals("table")) {
      if (literal.value() == null) throw new Refused("NULL as the table of a procedure", "name tables as layer.table");
      String table = String.valueOf(literal.value());
      names.table(List.of(table.split("\\.", -1)));
    }
  }

  private static Refused unknown() {
    return new Refused("this procedure", "use one of " + SYSTEM + String.join(", " + SYSTEM, Lists.PROCEDURES.keySet()));
  }

  private Calls() {}
}
