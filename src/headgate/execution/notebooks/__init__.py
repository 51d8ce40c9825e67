"""What a worker does around a notebook: lays out what it reads, and looks through what it left, trusting none."""
