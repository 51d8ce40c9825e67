import java.io.File;
import java.util.Map;
import org.apache.iceberg.Files;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;

/** The files of a warehouse that is a folder on this machine, without Hadoop. */
public final class LocalFiles implements FileIO {

  @Override
  public void initialize(Map<String, String> properties) {}

  @Override
  public InputFile newInputFile(String location) {
    return Files.localInput(file(location));
  }

  @Override
  public OutputFile newOutputFile(String location) {
    return new Named(location, Files.localOutput(file(location)));
  }

  @Override
  public void deleteFile(String location) {
    file(location).delete();
  }

  /** A file that is called what its writer called it; else manifests would name a path without a scheme. */
  private record Named(String location, OutputFile file) implements OutputFile {

    @Override
    public PositionOutputStream create() {
      return file.create();
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return file.createOrOverwrite();
    }

    @Override
    public InputFile toInputFile() {
      return Files.localInput(LocalFiles.file(location));
    }
  }

  private static File file(String location) {
    return new File(location.replaceFirst("^file:/*", "/"));
  }
}
