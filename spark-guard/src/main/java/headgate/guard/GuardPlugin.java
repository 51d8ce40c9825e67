package headgate.guard;

import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/** Lets Spark start only if the guard is in place: an extension that cannot be loaded is a mere warning to Spark. */
public final class GuardPlugin implements SparkPlugin {

  private static final String EXTENSIONS = "spark.sql.extensions";
  private static final String ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions";

  @Override
  public DriverPlugin driverPlugin() {
    return new DriverPlugin() {
      @Override
      public Map<String, String> init(SparkContext context, PluginContext plugin) {
        check(context.getConf());
        context.addSparkListener(new EndedOperations(context));
        return Map.of();
      }
    };
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return null;
  }

  /** Throws unless these settings, and the classes on the class path, are those that the guard needs. */
  public static void check(SparkConf conf) {
    List<String> extensions = List.of(conf.get(EXTENSIONS, "").split("\\s*,\\s*"));
    if (!extensions.get(extensions.size() - 1).equals(GuardExtensions.class.getName()) || !extensions.contains(ICEBERG)) {
      throw wrong(EXTENSIONS + " must be " + ICEBERG + "," + GuardExtensions.class.getName());
    }
    Setup.NEEDED.forEach((key, value) -> {
      if (!value.equals(conf.get(key, ""))) throw wrong(key + " must be " + value);
    });
    Setup.IF_SET.forEach((key, value) -> {
      if (!value.equals(conf.get(key, value))) throw wrong(key + " must be " + value);
    });
    ClassLoader loader = GuardPlugin.class.getClassLoader();
    for (String name : Lists.REVIEWED) {
      if (loader.getResource(name.replace('.', '/') + ".class") == null) {
        throw wrong("the lists name " + name + ", which is gone; they were reviewed for another version");
      }
    }
  }

  private static IllegalStateException wrong(String what) {
    return new IllegalStateException("HEADGATE_GUARD: Spark must not start: " + what);
  }
}
