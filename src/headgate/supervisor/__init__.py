"""`headgate up`: starts the server processes and the scheduler, restarts what dies, and stops cleanly."""
