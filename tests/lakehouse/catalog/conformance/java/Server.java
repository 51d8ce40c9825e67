import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.rest.RESTCatalog;

/** The Headgate server at the property headgate.uri, called with HEADGATE_TOKEN, and the catalogs that tests open on it. */
final class Server implements AutoCloseable {

  private final List<RESTCatalog> open = new ArrayList<>();
  private RESTCatalog catalog;

  RESTCatalog catalog() {
    if (catalog == null) {
      catalog = connect("headgate", Map.of());
    }
    return catalog;
  }

  RESTCatalog connect(String name, Map<String, String> properties) {
    Map<String, String> all = new HashMap<>();
    all.put("uri", System.getProperty("headgate.uri"));
    all.put("token", System.getenv("HEADGATE_TOKEN"));
    all.put("io-impl", LocalFiles.class.getName());
    // What the tests of defaults and overrides expect of every catalog.
    all.put("table-default.default-key1", "catalog-default-key1");
    all.put("table-default.default-key2", "catalog-default-key2");
    all.put("table-override.override-key3", "catalog-override-key3");
    all.put("table-override.override-key4", "catalog-override-key4");
    all.putAll(properties);
    RESTCatalog made = new RESTCatalog();
    made.initialize(name, all);
    open.add(made);
    return made;
  }

  /** Drop everything that an earlier test left. */
  void empty() {
    for (Namespace namespace : catalog().listNamespaces()) {
      for (TableIdentifier table : catalog().listTables(namespace)) {
        catalog().dropTable(table);
      }
      catalog().dropNamespace(namespace);
    }
  }

  @Override
  public void close() throws Exception {
    for (RESTCatalog one : open) {
      one.close();
    }
  }
}
