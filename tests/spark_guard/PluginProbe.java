import headgate.guard.GuardPlugin;
import java.nio.charset.StandardCharsets;
import org.apache.spark.SparkConf;

/** Asks the plugin about settings: blocks of `key=value` lines on standard input, with an empty line between. */
public final class PluginProbe {

  public static void main(String[] arguments) throws Exception {
    for (String block : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\n\n")) {
      SparkConf conf = new SparkConf(false);
      for (String line : block.split("\n")) {
        String[] parts = line.split("=", 2);
        conf.set(parts[0], parts[1]);
      }
      System.out.println(answer(conf));
    }
  }

  private static String answer(SparkConf conf) {
    try {
      GuardPlugin.check(conf);
      return "starts";
    } catch (IllegalStateException problem) {
      return problem.getMessage();
    }
  }

  private PluginProbe() {}
}
