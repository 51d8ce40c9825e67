import headgate.guard.TableFileIO;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.HadoopConfigurable;
import org.apache.iceberg.hadoop.SerializableConfiguration;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;

/** Runs `ROOT METADATA` and then lines `verb location` from standard input through a TableFileIO that went over the wire. */
public final class FileIoProbe {

  public static void main(String[] arguments) throws Exception {
    TableFileIO made = new TableFileIO();
    made.setConf(new Configuration());
    made.initialize(Map.of(TableFileIO.ROOT, arguments[0], TableFileIO.METADATA, arguments[1], "s3.endpoint", "x"));
    TableFileIO io = sent(made);
    if (!io.properties().get("s3.endpoint").equals("x")) throw new AssertionError("a property got lost");
    for (String line : new String(System.in.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
      String[] parts = line.split(" ", 2);
      System.out.println(answer(io, parts[0], parts[1]));
    }
  }

  private static TableFileIO sent(TableFileIO io) throws Exception {
    ((HadoopConfigurable) io).serializeConfWith(conf -> new SerializableConfiguration(conf)::get);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(io);
    }
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      return (TableFileIO) in.readObject();
    }
  }

  private static String answer(TableFileIO io, String verb, String location) {
    try {
      return act(io, verb, location);
    } catch (Exception problem) {
      String message = String.valueOf(problem.getMessage()).split("\n")[0];
      return (message.startsWith("HEADGATE_REFUSED") ? "refused " : "failed ") + problem.getClass().getSimpleName() + " " + message;
    }
  }

  private static String act(TableFileIO io, String verb, String location) throws Exception {
    switch (verb) {
      case "read":
        return read(io.newInputFile(location));
      case "read-length":
        return read(io.newInputFile(location, 3));
      case "open":
        return "opened " + io.newInputFile(location).location();
      case "write":
        try (PositionOutputStream out = io.newOutputFile(location).createOrOverwrite()) {
          out.write("new".getBytes(StandardCharsets.UTF_8));
        }
        return "written";
      case "create":
        return "created " + io.newOutputFile(location).location();
      case "delete":
        io.deleteFile(location);
        return "deleted";
      case "delete-all":
        io.deleteFiles(List.of(location.split(" ")));
        return "deleted";
      case "delete-prefix":
        io.deletePrefix(location);
        return "deleted";
      case "list":
        List<String> found = new ArrayList<>();
        for (FileInfo file : io.listPrefix(location)) found.add(file.location().replaceFirst(".*/", ""));
        return "listed " + String.join(",", found.stream().sorted().toList());
      default:
        throw new IllegalArgumentException(verb);
    }
  }

  private static String read(InputFile file) throws Exception {
    try (SeekableInputStream in = file.newStream()) {
      return "content " + new String(in.readAllBytes(), StandardCharsets.UTF_8).strip();
    }
  }

  private FileIoProbe() {}
}
