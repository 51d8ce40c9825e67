import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.types.Types;

/** Iceberg's own Java client: URI TOKEN, then commands of two words each: what to do, and to which table. */
public class StockClient {

  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.optional(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "name", Types.StringType.get()));

  public static void main(String[] words) throws Exception {
    try (RESTCatalog catalog = new RESTCatalog()) {
      catalog.initialize("lake", Map.of("uri", words[0], "token", words[1], "rest-metrics-reporting-enabled", "false"));
      for (int i = 2; i + 1 < words.length; i += 2) {
        String answer;
        try {
          answer = act(catalog, words[i], TableIdentifier.parse(words[i + 1]));
        } catch (RuntimeException refused) {
          answer = refused.getClass().getSimpleName() + ": " + refused.getMessage();
        }
        System.out.println("ANSWER " + words[i] + " " + words[i + 1] + " " + answer);
      }
    }
  }

  private static String act(RESTCatalog catalog, String what, TableIdentifier name) throws IOException {
    switch (what) {
      case "create":
        return catalog.createTable(name, SCHEMA).location();
      case "list":
        return new TreeSet<>(catalog.listTables(name.namespace()).stream().map(TableIdentifier::name).toList()).toString();
      case "append":
        append(catalog.loadTable(name), List.of(10L, 11L));
        return "done";
      case "scan":
        return scan(catalog.loadTable(name));
      case "expire":
        Table table = catalog.loadTable(name);
        table.expireSnapshots().expireOlderThan(System.currentTimeMillis()).retainLast(1).commit();
        return "done";
      default:
        throw new IllegalArgumentException(what);
    }
  }

  private static void append(Table table, List<Long> ids) throws IOException {
    String place = table.locationProvider().newDataLocation(UUID.randomUUID() + ".parquet");
    OutputFile file = table.io().newOutputFile(place);
    DataWriter<Record> writer =
        Parquet.writeData(file)
            .forTable(table)
            .createWriterFunc((schema, type) -> GenericParquetWriter.create(schema, type))
            .withSpec(PartitionSpec.unpartitioned())
            .build();
    try (writer) {
      for (long id : ids) {
        writer.write(GenericRecord.create(table.schema()).copy(new HashMap<>(Map.of("id", id, "name", "java"))));
      }
    }
    DataFile written = writer.toDataFile();
    table.newAppend().appendFile(written).commit();
  }

  private static String scan(Table table) throws IOException {
    TreeSet<Long> found = new TreeSet<>();
    try (CloseableIterable<Record> rows = IcebergGenerics.read(table).build()) {
      for (Record row : rows) found.add((Long) row.getField("id"));
    }
    return found.toString();
  }
}
