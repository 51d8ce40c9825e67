package headgate.guard;

import java.io.IOException;
import java.io.Serializable;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Locale;

/** A folder, local or in an object store, and the question whether a location lies in it. */
final class Place implements Serializable {

  private static final long serialVersionUID = 1L;
  private static final String FILE = "file:";

  private final String folder;

  Place(String location) {
    this.folder = normal(location).replaceFirst("/+$", "");
    if (!folder.matches("file:/.+|[a-z0-9]+://[^/]+/.+")) {
      throw new IllegalArgumentException("HEADGATE_GUARD: a table's folder must not be all of a store");
    }
  }

  /** With the slash, so that a listing of this folder gives nothing of one whose name starts the same. */
  String asPrefix() {
    return folder + "/";
  }

  boolean isItself(String location) {
    return normal(location).replaceFirst("/+$", "").equals(folder);
  }

  /** Whether the location lies below this folder, by name and, for local files, on the disk with links followed. */
  boolean holds(String location) {
    String normal = normal(location);
    if (!normal.startsWith(folder + "/")) return false;
    return !normal.startsWith(FILE) || real(normal).startsWith(real(folder));
  }

  /** One spelling for one place; a location that could mean two places is refused. */
  private static String normal(String location) {
    if (location == null || location.isEmpty() || location.chars().anyMatch(c -> c < 32 || c == '\\')) throw outside();
    String plain = spelled(location);
    int start = plain.startsWith(FILE) ? FILE.length() : plain.indexOf("://") + 3;
    String decoded = plain.substring(start);
    for (int round = 0; round < 4; round++) {
      noDots(decoded);
      decoded = decode(decoded);
    }
    return plain;
  }

  private static String spelled(String location) {
    if (location.startsWith("/")) return FILE + slashes(location);
    int scheme = location.indexOf(':');
    if (scheme < 1) throw outside();
    String name = location.substring(0, scheme).toLowerCase(Locale.ROOT);
    String rest = location.substring(scheme + 1);
    if (name.equals("file")) {
      if (!rest.startsWith("/") || (rest.startsWith("//") && !rest.startsWith("///"))) throw outside();
      return FILE + slashes(rest);
    }
    if (!rest.startsWith("//")) throw outside();
    // Amazon's three schemes are one store. Its keys are texts, not paths: two slashes are not one.
    return (name.equals("s3a") || name.equals("s3n") ? "s3" : name) + ":" + rest;
  }

  private static String slashes(String path) {
    return path.replaceAll("/{2,}", "/");
  }

  private static void noDots(String path) {
    for (String part : path.split("[/\\\\]")) {
      if (part.equals("..") || part.equals(".")) throw outside();
    }
    if (path.indexOf('\0') >= 0) throw outside();
  }

  private static String decode(String path) {
    try {
      return URLDecoder.decode(path.replace("+", "%2B"), StandardCharsets.UTF_8);
    } catch (IllegalArgumentException incomplete) {
      return path; // a lone percent sign is one
    }
  }

  /** Where a path leads: what exists of it with links followed, and the rest as it is written. */
  private static Path real(String normal) {
    Path path = Path.of(normal.substring(FILE.length()));
    Path existing = path;
    while (existing != null && !Files.exists(existing, LinkOption.NOFOLLOW_LINKS)) existing = existing.getParent();
    if (existing == null) throw outside();
    try {
      return existing.toRealPath().resolve(existing.relativize(path));
    } catch (IOException nowhere) {
      throw outside();
    }
  }

  static Refused outside() {
    return new Refused("a file outside this table", "a table holds only files of its own");
  }
}
