"""The storage of the lakehouse: a folder or an S3 bucket. Paths are built from ids only."""
