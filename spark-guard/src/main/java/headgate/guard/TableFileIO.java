package headgate.guard;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.HadoopConfigurable;
import org.apache.iceberg.io.DelegateFileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.ResolvingFileIO;
import org.apache.iceberg.io.StorageCredential;
import org.apache.iceberg.io.SupportsStorageCredentials;
import org.apache.iceberg.util.SerializableMap;
import org.apache.iceberg.util.SerializableSupplier;

/**
 * The files of one table. Opens, creates and deletes nothing outside its root; reads its metadata folder, and neither
 * writes nor deletes there. What is inside goes to Iceberg's own FileIO for the scheme, with all properties.
 */
public final class TableFileIO implements DelegateFileIO, HadoopConfigurable, SupportsStorageCredentials {

  /** The table's own folder. */
  public static final String ROOT = "headgate.root";

  /** The folder of its metadata files, which the catalog writes. */
  public static final String METADATA = "headgate.metadata";

  private static final long serialVersionUID = 1L;

  private final ResolvingFileIO files = new ResolvingFileIO();
  private SerializableMap<String, String> properties;
  private Place root;
  private Place metadata;

  @Override
  public void initialize(Map<String, String> given) {
    this.root = new Place(needed(given, ROOT));
    this.metadata = new Place(needed(given, METADATA));
    this.properties = SerializableMap.copyOf(given);
    files.initialize(properties);
  }

  @Override
  public Map<String, String> properties() {
    return properties.immutableMap();
  }

  @Override
  public InputFile newInputFile(String location) {
    return files.newInputFile(readable(location));
  }

  @Override
  public InputFile newInputFile(String location, long length) {
    return files.newInputFile(readable(location), length);
  }

  @Override
  public OutputFile newOutputFile(String location) {
    return files.newOutputFile(writable(location));
  }

  @Override
  public void deleteFile(String location) {
    files.deleteFile(writable(location));
  }

  /** All or none: one location outside, and nothing is deleted. */
  @Override
  public void deleteFiles(Iterable<String> locations) {
    List<String> checked = new ArrayList<>();
    for (String location : locations) checked.add(writable(location));
    files.deleteFiles(checked);
  }

  @Override
  public Iterable<FileInfo> listPrefix(String prefix) {
    return files.listPrefix(root.isItself(prefix) ? root.asPrefix() : readable(prefix));
  }

  /** Folders are deleted by the catalog alone. */
  @Override
  public void deletePrefix(String prefix) {
    throw new Refused("deleting a folder", "drop the table");
  }

  @Override
  public void setCredentials(List<StorageCredential> credentials) {
    files.setCredentials(credentials);
  }

  @Override
  public List<StorageCredential> credentials() {
    return files.credentials();
  }

  @Override
  public void setConf(Configuration conf) {
    files.setConf(conf);
  }

  @Override
  public Configuration getConf() {
    return files.getConf();
  }

  @Override
  public void serializeConfWith(Function<Configuration, SerializableSupplier<Configuration>> serializer) {
    files.serializeConfWith(serializer);
  }

  @Override
  public void close() {
    files.close();
  }

  private String readable(String location) {
    if (!root.holds(location) && !metadata.holds(location)) throw Place.outside();
    return location;
  }

  private String writable(String location) {
    if (!root.holds(location) || metadata.holds(location)) throw Place.outside();
    return location;
  }

  private static String needed(Map<String, String> given, String key) {
    String value = given.get(key);
    if (value == null || value.isBlank()) throw new IllegalArgumentException("HEADGATE_GUARD: the property " + key + " is missing");
    return value;
  }
}
