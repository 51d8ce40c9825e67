import java.util.Map;
import org.apache.iceberg.catalog.CatalogTests;
import org.apache.iceberg.rest.RESTCatalog;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Iceberg's own tests of a catalog, run against a Headgate server. */
public class HeadgateCatalogTests extends CatalogTests<RESTCatalog> {

  private final Server server = new Server();

  @BeforeEach
  void empty() {
    server.empty();
  }

  @AfterEach
  void close() throws Exception {
    server.close();
  }

  @Override
  protected RESTCatalog catalog() {
    return server.catalog();
  }

  @Override
  protected RESTCatalog initCatalog(String name, Map<String, String> properties) {
    return server.connect(name, properties);
  }

  @Override
  protected boolean requiresNamespaceCreate() {
    return true;
  }

  @Override
  protected boolean supportsServerSideRetry() {
    return true;
  }

  /** Where a table lies is the server's choice. */
  @Override
  protected boolean overridesRequestedLocation() {
    return true;
  }

  /** Names are SQL names. */
  @Override
  protected boolean supportsNamesWithSlashes() {
    return false;
  }

  @Override
  protected boolean supportsNamesWithDot() {
    return false;
  }
}
