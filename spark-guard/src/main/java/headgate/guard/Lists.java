package headgate.guard;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The lists beside this class, read once. Whatever no list names is refused. */
final class Lists {

  private static final String SPARK = "org.apache.spark.sql.";

  /** Plan classes before resolution, and after it. */
  static final Set<String> PARSED = new HashSet<>();

  static final Set<String> RESOLVED = new HashSet<>();

  /** Classes that only the rounds of a recursive query may hold. */
  static final Set<String> LOOPS = classes("loops.txt");

  static final Set<String> EXPRESSIONS = classes("expressions.txt");
  static final Names VALUES = new Names(classes("values.txt"));
  static final Set<String> FUNCTIONS = Set.copyOf(lines("functions.txt"));
  static final Set<String> METADATA_TABLES = Set.copyOf(lines("metadata-tables.txt"));
  static final Names PROPERTIES = new Names(new HashSet<>(lines("properties.txt")));
  static final Set<String> REFUSED_COLUMNS = Set.copyOf(lines("refused-columns.txt"));

  /** Procedures, each with its arguments in order. */
  static final Map<String, List<String>> PROCEDURES = new LinkedHashMap<>();

  /** Words for refused plan classes. */
  static final Map<String, String> WORDS = new HashMap<>();

  static {
    for (String line : lines("plans.txt")) {
      String[] parts = line.split("\\s+");
      if (!parts[0].equals("resolved")) PARSED.add(full(parts[1]));
      if (!parts[0].equals("parsed")) RESOLVED.add(full(parts[1]));
    }
    for (String line : lines("procedures.txt")) {
      List<String> parts = List.of(line.split("\\s+"));
      PROCEDURES.put(parts.get(0), parts.subList(1, parts.size()));
    }
    for (String line : lines("refused-plans.txt")) {
      String[] parts = line.split(" : ", 2);
      if (parts.length == 2) WORDS.put(full(parts[0]), parts[1]);
    }
  }

  /** Words for a script, which is refused before it is parsed. */
  static final String SCRIPT = WORDS.get(full("catalyst.plans.logical.CompoundBody"));

  /** Every class that a list names, allowed or refused. */
  static final Set<String> REVIEWED = reviewed();

  /** Names, and beginnings of names that a trailing star marks. */
  static final class Names {
    private final Set<String> exact = new HashSet<>();
    private final List<String> beginnings = new ArrayList<>();

    Names(Set<String> lines) {
      for (String line : lines) {
        if (line.endsWith("*")) beginnings.add(line.substring(0, line.length() - 1));
        else exact.add(line);
      }
    }

    boolean has(String name) {
      return exact.contains(name) || beginnings.stream().anyMatch(name::startsWith);
    }
  }

  private static Set<String> reviewed() {
    Set<String> all = new HashSet<>(PARSED);
    all.addAll(RESOLVED);
    all.addAll(EXPRESSIONS);
    for (String file : List.of("refused-plans.txt", "refused-expressions.txt")) {
      for (String line : lines(file)) all.add(full(line.split(" : ", 2)[0]));
    }
    return all;
  }

  private static Set<String> classes(String file) {
    Set<String> names = new HashSet<>();
    for (String line : lines(file)) names.add(full(line));
    return Collections.unmodifiableSet(names);
  }

  private static String full(String name) {
    return name.startsWith("org.") || name.startsWith("java.") || name.startsWith("scala.") ? name : SPARK + name;
  }

  private static List<String> lines(String file) {
    List<String> found = new ArrayList<>();
    try (InputStream stream = Lists.class.getResourceAsStream(file);
        BufferedReader reader = new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
      reader.lines().map(String::strip).filter(line -> !line.isEmpty() && !line.startsWith("#")).forEach(found::add);
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
    return found;
  }

  private Lists() {}
}
