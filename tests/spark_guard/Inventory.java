import java.io.IOException;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase;

/** Prints every concrete plan class, expression class, function and procedure that the given jars bring. */
public final class Inventory {

  private static final String SPARK = "org.apache.spark.sql.";
  private static final Pattern EXAMPLE = Pattern.compile("\n\\s*> (.*?);\n", Pattern.DOTALL);
  private static final TreeSet<String> FOUND = new TreeSet<>();

  public static void main(String[] jars) throws Exception {
    ClassLoader loader = Inventory.class.getClassLoader();
    Class<?> plan = load(loader, SPARK + "catalyst.plans.logical.LogicalPlan");
    Class<?> expression = load(loader, SPARK + "catalyst.expressions.Expression");
    for (String jar : jars) {
      for (String name : classes(jar)) {
        Class<?> one = load(loader, name);
        if (one != null && !Modifier.isAbstract(one.getModifiers())) {
          if (plan.isAssignableFrom(one)) FOUND.add("plan " + name);
          if (expression.isAssignableFrom(one)) FOUND.add("expression " + name);
        }
      }
    }
    functions(loader, "FunctionRegistry");
    functions(loader, "TableFunctionRegistry");
    procedures(loader);
    FOUND.forEach(System.out::println);
  }

  private static List<String> classes(String jar) throws IOException {
    List<String> names = new ArrayList<>();
    try (JarFile file = new JarFile(jar)) {
      file.stream()
          .map(entry -> entry.getName())
          .filter(name -> name.endsWith(".class") && name.startsWith("org/apache/"))
          .filter(name -> name.startsWith("org/apache/spark/") || name.startsWith("org/apache/iceberg/spark/"))
          .forEach(name -> names.add(name.substring(0, name.length() - 6).replace('/', '.')));
    }
    return names;
  }

  private static Class<?> load(ClassLoader loader, String name) {
    try {
      return Class.forName(name, false, loader);
    } catch (ClassNotFoundException | LinkageError missing) {
      return null; // names a class that no jar here brings: it cannot be made here either
    }
  }

  private static void functions(ClassLoader loader, String registry) throws Exception {
    Object module = Class.forName(SPARK + "catalyst.analysis." + registry + "$", true, loader).getField("MODULE$").get(null);
    FunctionRegistryBase<?> builtin = (FunctionRegistryBase<?>) module.getClass().getMethod("builtin").invoke(module);
    builtin.listFunction().foreach(each -> {
      FOUND.add("function " + each.funcName());
      examples(each.funcName(), builtin.lookupFunction(each).get().getExamples());
      return null;
    });
  }

  /** The examples of its documentation, one a line, with line ends as \\n. */
  private static void examples(String function, String documented) {
    Matcher each = EXAMPLE.matcher(documented.replace("_FUNC_", function));
    while (each.find()) FOUND.add("example " + function + " " + each.group(1).replace("\n", "\\n"));
  }

  private static void procedures(ClassLoader loader) throws Exception {
    Class<?> all = Class.forName("org.apache.iceberg.spark.procedures.SparkProcedures", true, loader);
    java.lang.reflect.Field builders = all.getDeclaredField("BUILDERS");
    builders.setAccessible(true);
    ((java.util.Map<?, ?>) builders.get(null)).keySet().forEach(name -> FOUND.add("procedure " + name));
    for (Object type : Class.forName("org.apache.iceberg.MetadataTableType", true, loader).getEnumConstants()) {
      FOUND.add("metadata-table " + type.toString().toLowerCase(java.util.Locale.ROOT));
    }
  }

  private Inventory() {}
}
