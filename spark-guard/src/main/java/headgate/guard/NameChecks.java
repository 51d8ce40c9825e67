package headgate.guard;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Pattern;
import scala.collection.Iterator;
import scala.collection.Seq;

/** What tables, functions, columns and properties may be called. */
final class NameChecks {

  static final String CATALOG = "lake";
  private static final Pattern PART = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");
  private static final Set<String> RESERVED = Set.of("spark_catalog", "system", "global_temp", "session", "builtin");

  private final Setup setup;

  NameChecks(Setup setup) {
    this.setup = setup;
  }

  /** A table, or a namespace if `namespace`: plain words, in our catalog. */
  void identifier(Seq<String> name, boolean namespace) {
    parts(list(name), namespace ? 1 : 2);
  }

  void table(Seq<String> name) {
    identifier(name, false);
  }

  void table(List<String> name) {
    parts(name, 2);
  }

  /** A name of `qualified` parts or more may start with a catalog. */
  private void parts(List<String> name, int qualified) {
    for (String part : name) {
      if (!PART.matcher(part).matches()) {
        throw new Refused(
            "a name with unusual characters", "name tables as layer.table, with letters, digits and underscores");
      }
    }
    if (name.size() >= qualified) catalog(name.get(0));
  }

  private void catalog(String first) {
    if (first.equals(CATALOG)) return;
    String lower = first.toLowerCase(Locale.ROOT);
    if (RESERVED.contains(lower) || lower.equals(CATALOG) || setup.isCatalog(first)) {
      throw new Refused("a name in " + first, "name tables as layer.table or " + CATALOG + ".layer.table");
    }
  }

  void function(Seq<String> name) {
    function(list(name));
  }

  void function(List<String> name) {
    String called = String.join(".", name).toLowerCase(Locale.ROOT);
    boolean ours = name.size() == 1 || (name.size() == 3 && name.get(0).equals(CATALOG));
    if (!ours || !Lists.FUNCTIONS.contains(called)) {
      throw new Refused("the function " + shown(name), "use a built-in function that the reference lists");
    }
  }

  void column(Seq<String> name) {
    for (String part : list(name)) column(part);
  }

  void column(String part) {
    // As Spark compares: letters that only look another way in upper case are the same to it.
    if (Lists.REFUSED_COLUMNS.stream().anyMatch(part::equalsIgnoreCase)) {
      throw new Refused("the column " + part, "use the columns that DESCRIBE TABLE shows");
    }
  }

  /** That the session acts for a member whom SQL may name. */
  void user() {
    if (setup.user().isEmpty()) throw new Refused("current_user()", "this session acts for no member");
  }

  /** A key of a table property that members may set. */
  void property(String key) {
    if (!Lists.PROPERTIES.has(key.toLowerCase(Locale.ROOT)) || !key.equals(key.toLowerCase(Locale.ROOT))) {
      throw new Refused("the table property " + shown(List.of(key)), "use a property that the reference lists, or custom.*");
    }
  }

  static List<String> list(Seq<String> names) {
    List<String> found = new ArrayList<>();
    Iterator<String> each = names.iterator();
    while (each.hasNext()) found.add(each.next());
    return found;
  }

  /** A name as it was written, but never a text that could carry more than a name. */
  private static String shown(List<String> name) {
    String joined = String.join(".", name);
    return joined.length() <= 128 && joined.matches("[A-Za-z0-9_.\\-]+") ? joined : "with unusual characters";
  }
}
