package headgate.guard;

import org.apache.spark.sql.catalyst.plans.logical.ColumnDefinition;
import org.apache.spark.sql.catalyst.plans.logical.CreateNamespace;
import org.apache.spark.sql.catalyst.plans.logical.TableSpec;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedTableSpec;
import scala.Option;
import scala.collection.Map;

/** What CREATE and REPLACE may say of a table, a column, a namespace. */
final class Specs {

  private final NameChecks names;

  Specs(NameChecks names) {
    this.names = names;
  }

  void unresolved(UnresolvedTableSpec spec) {
    common(spec.provider(), spec.location(), spec.serde(), spec.external());
    if (spec.optionExpression().options().nonEmpty()) noOptions();
    if (spec.constraints().nonEmpty()) noConstraints();
    properties(spec.properties());
  }

  void resolved(TableSpec spec) {
    common(spec.provider(), spec.location(), spec.serde(), spec.external());
    if (spec.options().nonEmpty()) noOptions();
    if (spec.constraints().nonEmpty()) noConstraints();
    properties(spec.properties());
  }

  void properties(Map<String, String> properties) {
    properties.foreach(pair -> {
      names.property(pair._1());
      if (pair._1().equals("format-version") && !pair._2().matches("[12]")) {
        throw new Refused("this format version", "use format-version 2");
      }
      return null;
    });
  }

  static void column(ColumnDefinition column) {
    if (column.generationExpression().isDefined() || column.identityColumnSpec().isDefined()) {
      throw new Refused("a generated column", "compute it in the query");
    }
  }

  static void namespace(CreateNamespace namespace) {
    namespace.properties().keysIterator().foreach(key -> {
      if (!key.equals("comment")) throw new Refused("LOCATION and properties of a layer", "leave them out");
      return null;
    });
  }

  private static void common(Option<String> provider, Option<String> location, Option<?> serde, boolean external) {
    if (provider.isDefined() && !provider.get().equalsIgnoreCase("iceberg")) {
      throw new Refused("USING with another format", "leave it out, or write USING iceberg");
    }
    if (location.isDefined()) throw new Refused("LOCATION", "tables have the place that Headgate gives them");
    if (serde.isDefined()) throw new Refused("STORED AS and ROW FORMAT", "leave them out: tables are Iceberg tables");
    if (external) throw new Refused("EXTERNAL", "leave it out: tables are Headgate's own");
  }

  private static void noOptions() {
    throw new Refused("OPTIONS", "use TBLPROPERTIES");
  }

  private static void noConstraints() {
    throw new Refused("a constraint", "use expectations");
  }
}
