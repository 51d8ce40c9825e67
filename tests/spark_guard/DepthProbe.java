import headgate.guard.Depth;
import headgate.guard.Refused;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;

/** For each line, a text in base64: how deep the guard finds it, or `refused`; and whether Spark parses it. */
public final class DepthProbe {

  public static void main(String[] arguments) throws Exception {
    for (String line : new String(System.in.readAllBytes(), StandardCharsets.US_ASCII).split("\n")) {
      String text = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
      String depth = depth(text);
      System.out.println(depth + " " + (depth.equals("refused") ? "unparsed" : parsed(text)));
    }
    System.exit(0);
  }

  private static String depth(String text) {
    try {
      return String.valueOf(Depth.of(text));
    } catch (Refused refused) {
      return "refused";
    }
  }

  private static String parsed(String text) {
    try {
      CatalystSqlParser$.MODULE$.parsePlan(text);
      return "parsed";
    } catch (Exception problem) {
      return "failed";
    }
  }

  private DepthProbe() {}
}
