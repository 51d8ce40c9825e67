package headgate.guard;

import java.util.Locale;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import scala.Option;

/** Resolved tables: Iceberg's, of our catalog, and of their metadata only what tells no paths. */
final class Tables {

  private static final String INSTEAD = "read tables of the lakehouse, as layer.table";

  static void relation(Table table, Option<CatalogPlugin> catalog, Option<Identifier> identifier) {
    if (catalog.isEmpty() || identifier.isEmpty()) throw new Refused("something that is no table", INSTEAD);
    catalog(catalog.get());
    table(table);
  }

  static void catalog(CatalogPlugin catalog) {
    if (!NameChecks.CATALOG.equals(catalog.name())) throw new Refused("a name outside the lakehouse", INSTEAD);
  }

  static void table(Table table) {
    if (table instanceof RowLevelOperationTable operation) {
      table(operation.table());
    } else if (table instanceof ShownTable shown) {
      table(shown.table());
    } else if (table instanceof SparkTable spark) {
      metadata(spark.table());
    } else {
      throw new Refused("something that is no table", INSTEAD);
    }
  }

  private static void metadata(org.apache.iceberg.Table table) {
    if (!(table instanceof BaseMetadataTable)) return;
    String kind = table.getClass().getSimpleName().toLowerCase(Locale.ROOT).replaceFirst("table$", "");
    if (!Lists.METADATA_TABLES.contains(kind)) {
      throw new Refused("this table about a table", "use one of " + String.join(", ", Lists.METADATA_TABLES.stream().sorted().toList()));
    }
  }

  private Tables() {}
}
