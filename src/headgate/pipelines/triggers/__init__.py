"""What starts pipelines by itself: schedules, other pipelines, and changes of tables."""
