"""Where the lakehouse keeps its bytes: a folder, or a bucket. Which names are used is decided here, from ids alone."""
