package headgate.guard;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;

/** A table as SHOW CREATE TABLE, DESCRIBE EXTENDED and SHOW TBLPROPERTIES may tell of it: without paths and internals. */
record ShownTable(Table table) implements Table {

  private static final Set<String> OF_SPARK = Set.of("provider", "comment");

  @Override
  public String name() {
    return table.name();
  }

  @Override
  public Column[] columns() {
    return table.columns();
  }

  @Override
  public Transform[] partitioning() {
    return table.partitioning();
  }

  /** Those that members may set, and what CREATE TABLE has words of its own for. */
  @Override
  public Map<String, String> properties() {
    Map<String, String> shown = new TreeMap<>(table.properties());
    shown.keySet().removeIf(key -> !OF_SPARK.contains(key) && !Lists.PROPERTIES.has(key));
    return shown;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return Set.of();
  }
}
